"""Journeys: composing tasks of several environments into one conversation in one world, and judging it.

The subtasks share one cart, one order history, one clock and one customer. The next begins when the agent submits the
current one, right or wrong; the customer may also interrupt one with the next and come back to it later.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.customer.goal_state import Progress
from ecomlab.customer.utterances import Manner
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.journey.chain import Job, draw_chains, stands_on
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.subtask import Subtask
from ecomlab.reward import Verdict
from ecomlab.seeding import pick, rng, shuffled, whole_near
from ecomlab.steps import SHARE_OF_A_JOB, draw_kinds, only
from ecomlab.task import Goal, Interrupt, Need, Problem, Task, TaskError, TaskKey, changes_of
from ecomlab.tool import FormatError, RefusedError
from ecomlab.world.orders.history import draw_history

LOOKING = ("CART", "SUB")
"""Environments to which the customer's visits belong."""
PHANTOMS = 64
"""Maximum number of tasks drawn to find visits that share no type with a journey."""


def draw(
    environment: Environment, key: TaskKey, axes: Difficulty, shop: Shop, make: Callable[..., Task]
) -> Problem | None:
    """Draw a journey through some of the environments that `environment` composes; `make` makes a problem a task. None
    where all of them are about the same products."""
    from ecomlab.world.policy_book.book import draw_book  # reads the rules, which not every import needs

    random = key.rng("journey")
    order = shuffled(random, environment.composes)
    count = whole_near(random, axes.journey.subtasks)
    share = axes.override({"steps.mean": axes.steps.mean * SHARE_OF_A_JOB})
    chains = len(draw_kinds(share, ("chain",), key.rng("chains")))  # its own steps, beside those of its jobs
    for first in range(len(order)):  # the first rarely agrees with no other
        names = order[first:] + order[:first]
        jobs, taken, visited = _agreeing(names, count, key, share, shop, make)
        if len(jobs) > 1:
            break
    else:
        return None

    def made(env: str, problem: Problem) -> Task:
        return make(ENVIRONMENTS[env], problem, key, share, shop, part=True)

    chosen = draw_chains(jobs, chains, key, axes, shop, made) if chains else [job.task for job in jobs]
    switching = bool(random.random() < axes.p_switch)
    # Nobody is asked for what stands on a job that is not done.
    able = [at for at in range(len(chosen) - 1) if not stands_on(chosen[at + 1])]
    interrupted = pick(random, able or [0])
    left = chosen[interrupted]
    types = tuple(str(kind) for (_, name), kind in left.goal.slots.items() if name == "type")
    interrupt = Interrupt(moment=ENVIRONMENTS[left.env].moments[0], about=types)
    opening = pick(random, environment.phrases.data["first"]) + _begun(chosen[0], random)
    # The world holds what any subtask might need, so that tools do not tell which ones will not come (SILENT).
    absent = [env for env in LOOKING if env not in {part.env for part in chosen}]
    phantoms = _phantom_visits(absent, taken | visited, key, share, shop)
    worlds = [draw_history(key, share, shop), {"policies": draw_book(key, share, shop)}]
    return Problem(
        goal=Goal(),
        world=_merged([*worlds, *(part.world for part in chosen), *phantoms], key),
        need=Need(sum(part.need.turns for part in chosen), sum(part.need.calls for part in chosen)),
        opening=opening,
        subtasks=chosen,
        interrupts=[(interrupted, interrupt)] if switching and able else [],
    )


def following(task: Task, under_way: Sequence[int], opened: int, progress: Progress | None) -> int | None:
    """Find the number of the customer's next subtask; None if they stay with the last one under way.

    `opened` subtasks have begun; `progress` is that of the last one `under_way`, None while the customer talks of it.
    """
    if opened == len(task.subtasks):
        return None
    if not under_way:
        return opened
    if progress is None or opened != under_way[-1] + 1:
        return None
    due = any(at == under_way[-1] and progress.reached(event) for at, event in task.interrupts)
    return opened if due else None


def turning(task: Task, number: int | None, interrupts: bool = False) -> str:
    """Write the customer's transition to a subtask or, with None, back to the one that they interrupted."""
    random, phrases, manner = (
        rng("turning", *task.key, number),
        ENVIRONMENTS[task.env].phrases,
        Manner.of(task.key),
    )
    if number is None:
        ((interrupted, _),) = task.interrupts
        name = phrases.data["names"][task.subtasks[interrupted].env]
        return pick(random, manner.fitting(phrases.acts["back"])).text.replace("{seen}", name)
    turns = manner.fitting(phrases.acts["interrupt" if interrupts else "next"])
    turn = shuffled(rng("next", *task.key), dict.fromkeys(turns))[number]  # so that none is said twice
    return f"{turn.text} {_begun(task.subtasks[number], random)}"


def answer_of(environment: Environment, values: Mapping[str, Any]) -> dict[str, Any]:
    """Pick an environment's arguments from those of a journey's `submit`. Raises RefusedError if one is missing."""
    own = environment.submit
    expected = own.arguments.model_fields
    given = {name: values[name] for name in expected if values[name] is not None}
    belongs = f"the job at hand is handed in with {', '.join(expected)}"
    if not given and any(value is not None for value in values.values()):
        raise RefusedError(f"{belongs}; nothing of that was given")  # another subtask was meant
    try:
        return own.check(given)
    except FormatError as error:
        raise RefusedError(f"{belongs}: {error}") from None


def judge(subtasks: Sequence[Subtask], opened: int) -> Verdict:
    """Judge a finished episode; a journey by the mean of its subtasks' verdicts, each at the time of its submit. Work
    that later turns undid in the world counts as undone."""
    if len(subtasks) == 1:
        return subtasks[0].verdict or subtasks[0].verify()
    verdicts = []
    for number, subtask in enumerate(subtasks):
        if number >= opened:
            verdicts.append(Verdict(-1.0, False, "never begun"))
            continue
        now = subtask.verdict if subtask.verdict and not subtask.env.acts_on else subtask.verify()
        verdicts.append(min(now, subtask.verdict or now, key=lambda v: (v.correct, v.credit)))
    return Verdict(
        sum(v.credit for v in verdicts) / len(verdicts),
        all(v.correct for v in verdicts),
        "; ".join(f"{s.task.env}: {v.why}" for s, v in zip(subtasks, verdicts, strict=True)),
        tuple(claim for v in verdicts for claim in v.claims),
    )


def _begun(part: Task, random: Any) -> str:
    return f"{pick(random, ENVIRONMENTS[part.env].phrases.intros)} {part.opening}"


def _memberships(parts: Sequence[Problem]) -> set[str]:
    """Collect what the customer says of their membership, where more than one of these subtasks asks for it."""
    said = []
    for part in parts:
        slots = [part.goal.of(), *(change.slots for change in changes_of(part.events))]
        said.append({one["tier"] for one in slots if "tier" in one})
    said = [tiers for tiers in said if tiers]
    return set[str]().union(*said) if len(said) > 1 else set()


def _types(problem: Problem, shop: Shop) -> set[str]:
    """Collect the product types that a goal, its notes and events name, or of which something is sold out."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            for entry in value:
                yield from walk(entry)

    data = [problem.goal.to_json(), problem.notes, [event.to_json() for event in problem.events]]
    return _types_of(problem.world.get("gone", ()), shop) | {
        name for name in walk(data) if name in shop.catalog.type_codes
    }


def _types_of(product_ids: Sequence[str], shop: Shop) -> set[str]:
    rows = map(shop.catalog.row, product_ids)
    return {shop.catalog.type_of(row).name for row in rows if row is not None}


def _phantom_visits(
    absent: Sequence[str], taken: set[str], key: TaskKey, axes: Difficulty, shop: Shop
) -> Iterator[dict[str, Any]]:
    """Draw the visits that absent environments would have brought, from tasks of theirs that nobody has, so that the
    visits do not tell which subtasks will not come (SILENT). None is of a type that this journey is about."""
    # As many visits as a job has, without the wishes that stand on some of them.
    axes = axes.override(only() | {"p_oos": 0.0, "p_switch": 0.0})
    for env in absent:
        for attempt in range(PHANTOMS):
            named = key._replace(env=f"{key.env} without {env} {attempt}")
            try:
                world = ENVIRONMENTS[env].draw(named, axes, shop).world
            except TaskError:
                continue
            seen = _types_of(world["visits"], shop)
            if not seen & taken:
                taken = taken | seen
                yield dict(world)
                break


def _agreeing(
    order: Sequence[str], count: int, key: TaskKey, axes: Difficulty, shop: Shop, make: Callable[..., Task]
) -> tuple[list[Job], set[str], set[str]]:
    """Draw the first `count` subtasks that share no product types and in which the customer is the same member, with
    the types that they are about and those visited for them."""
    chosen: list[Job] = []
    taken: set[str] = set()
    visited: set[str] = set()
    for name in order:
        if len(chosen) == count:
            break
        environment = ENVIRONMENTS[name]
        try:
            problem = environment.draw(key, axes, shop)
        except TaskError:  # too small a shop for this one; others may do
            continue
        types, seen = _types(problem, shop), _types_of(problem.world.get("visits", ()), shop)
        # Two subtasks about one type could not be told apart; a type visited for two of them would stand out.
        alike = types & taken or seen & visited
        if not alike and len(_memberships([*(job.problem for job in chosen), problem])) < 2:
            chosen.append(Job(problem, make(environment, problem, key, axes, shop, part=True)))
            taken |= types
            visited |= seen
    return chosen, taken, visited


def _merged(worlds: Sequence[Mapping[str, Any]], key: TaskKey) -> dict[str, Any]:
    """Merge the subtasks' worlds in random order: what they share is kept once; of lists that differ one follows the
    other, for what was looked at after something else still was."""
    merged: dict[str, Any] = {}
    for world in shuffled(rng("merged", *key), worlds):
        for name, value in world.items():
            if name in merged and merged[name] != value:
                value = list(dict.fromkeys([*merged[name], *value]))
            merged[name] = value
    return merged
