"""The net: digests of everything that is seen and scored, which a change of structure must not change.

`python tests/net.py` writes `net.json` anew; a commit that does so says which digests changed, and why. Nothing here
looks at the internal form of a task: only at openings, budgets, schemas, messages, tool results and scores.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, load_shop, make_task
from ecomlab.envs.registry import moved_by
from ecomlab.episode.play import finish
from ecomlab.laws import attackers
from ecomlab.players.base import Perturbation
from ecomlab.seeding import digest, rng
from ecomlab.task import Player

FILE = Path(__file__).with_name("net.json")
LEVELS = range(13)
EVERY = 4
"""Of so many levels one shows the attackers too, and is asked for by every run of the tests."""
SEEDS = range(500, 504)

SAID = (
    "Is there anything else I should know?",
    "Which size would you like?",
    "What brand do you prefer, and how much would you spend?",
    "Which order do you mean?",
    "When did you buy it?",
    "What matters most to you?",
    "How many do you need?",
    "Any other details?",
    "Do you want a replacement or your money back?",
    "Are you a member? How do you pay?",
    "What is on the list, and what is the budget?",
    "Shall I submit these?",
    "Done, everything is in your cart.",
    "I have found {title}.",
    "Would {title} be fine?",
    "Okay.",
    "Let me look.",
    "Colour? Material? Which rating?",
    "How soon must it arrive?",
    "Has the box been opened?",
)
"""What the explorer says to the customer."""


class Explorer:
    """Calls tools at random with ids that it has seen, or has not, and says what assistants say: for what happens on
    the way to an error as much as on the way to a result. It knows tools by their schemas alone."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def __call__(self, messages: list[Any], tools: list[dict[str, Any]]) -> Any:
        results = [json.loads(m["content"]) for m in messages if m["role"] == "tool"]
        self.seen = [pair for result in results for pair in _fields(result)]
        self.words = messages[1]["content"].split()
        if self.random.random() < 0.2:
            titles = [str(value) for name, value in self.seen if name == "title"] or ["nothing"]
            return {"role": "assistant", "content": self._one(SAID).replace("{title}", self._one(titles))}
        calls = []
        for _ in range(int(self.random.integers(1, 5))):
            function = self._one(tools)["function"]
            if function["name"] == "submit" and len(messages) < 12 and self.random.random() < 0.8:
                function = tools[0]["function"]
            required = function["parameters"].get("required", ())
            arguments = {
                name: self._value(name, field)
                for name, field in function["parameters"].get("properties", {}).items()
                if name in required or self.random.random() < 0.4
            }
            calls.append((function["name"], arguments))
        return attackers.calls(*calls)

    def _one(self, options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def _value(self, name: str, field: dict[str, Any]) -> Any:
        """A value of that type: mostly one that a result has shown under that name."""
        for option in field.get("anyOf", [field]):
            if "enum" in option:
                return self._one(option["enum"])
        kind = field.get("type") or field["anyOf"][0].get("type")
        if kind == "array":
            items = field.get("items") or field["anyOf"][0].get("items", {})
            return [self._value(name.removesuffix("s"), items) for _ in range(int(self.random.integers(4)))]
        if kind == "object":
            shown = [value for key, value in self.seen if key == "attributes" and value]
            attributes = list(self._one(shown).items())[:1] if shown else []
            return dict(attributes)
        if kind == "boolean":
            return bool(self.random.random() < 0.9)
        if kind in ("integer", "number"):
            return int(self.random.integers(1, 6))
        if name == "question":
            return self._one(SAID)
        if name in ("query", "category"):
            at = int(self.random.integers(len(self.words)))
            types = [value for key, value in self.seen if key == "type"]
            return self._one(types) if types and name == "category" else " ".join(self.words[at : at + 3])
        shown = [value for key, value in self.seen if key == name and isinstance(value, str)]
        if shown and self.random.random() < 0.9:
            return self._one(shown)
        return self._one(("P000000", "delivered", "returned", "3 days", "price", "yes"))


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Every (name, value) of a JSON value, whatever its depth."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield name, entry
            yield from _fields(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _fields(entry)


def tasks_of(env: str, d: int, shop: Shop, big_shop: Shop) -> list[tuple[Task, Shop]]:
    """The tasks of one cell; the last of them in the large shop."""
    shops = [shop] * (len(SEEDS) - 1) + [big_shop]
    return [(make_task(env, d, seed, some), some) for seed, some in zip(SEEDS, shops, strict=True)]


def told(make: Callable[[Episode], Player], task: Task, shop: Shop) -> list[Any]:
    """What an episode says and scores."""
    episode = Episode(task, shop)
    trajectory = finish(make(episode), episode)
    score = trajectory.score
    value = None if score.unscored else score.value
    return [
        trajectory.messages, trajectory.end, trajectory.turns, trajectory.calls, value, score.correct,
        dict(score.parts),
    ]  # fmt: skip


def measured(env: str, d: int, shop: Shop, big_shop: Shop) -> dict[str, list[str]]:
    """Digests at one level by what they are of, in the order of the tasks."""
    here = ENVIRONMENTS[env]
    found: dict[str, list[str]] = {}

    def add(name: str, value: Any) -> None:
        found.setdefault(name, []).append(digest(value))

    for task, some in tasks_of(env, d, shop, big_shop):
        episode = Episode(task, some)
        add(
            "seen",
            [list(task.key), task.opening, task.turns, task.calls, episode.messages, episode.tools],
        )
        add("oracle", told(here.oracle, task, some))
        add("fair", told(lambda _, s=some: here.reference_player(s), task, some))  # type: ignore[misc]
        for rate in (0.1, 0.4):
            slips = Perturbation(rng("net", env, d, task.seed, rate), rate)
            add("noisy", told(lambda _, s=some, p=slips: here.reference_player(s, p), task, some))  # type: ignore[misc]
        for number in range(3):
            random = rng("explorer", env, d, task.seed, number)
            add("explorer", told(lambda _, r=random: Explorer(r), task, some))  # type: ignore[misc]
    if d % EVERY == 0:
        made = {
            **attackers.blind(here),
            **attackers.positional(here),
            "naive": attackers.naive(here),
        }
        for name in sorted(made):
            player = made[name](d)
            add("attackers", [name, told(lambda _, p=player: p, task, some)])  # type: ignore[misc]
        add("chance", here.audit.chance(task, some))
    for axis, value in {"p_missing": 1.0, "p_switch": 1.0, "p_oos": 0.6, "p_noise": 0.4}.items():
        if axis not in (moved_by(env) or ()):
            continue
        moved = make_task(env, d, 600 + d, shop, {axis: value})
        add("overrides", [moved.opening, moved.turns, moved.calls])
        add("overrides", told(lambda _: here.reference_player(shop), moved, shop))
    return found


def levels_of(env: str) -> range:
    """Levels of which digests are kept: a journey takes ten times as long."""
    return LEVELS[:: EVERY if ENVIRONMENTS[env].composes else 1]


def measure(env: str, levels: Iterable[int], shop: Shop, big_shop: Shop) -> dict[str, dict[str, str]]:
    """A digest by level, and by what it is of, for one environment."""
    return {
        str(d): {name: digest(values) for name, values in sorted(measured(env, d, shop, big_shop).items())}
        for d in levels
    }


def training(shop: Shop) -> dict[str, Any]:
    """A training batch of every environment, played from fixed texts, and one training step of the novice.

    Ids and masks are compared exactly; what floating point decides, to a tolerance.
    """
    import torch

    from ecomlab.models.batch import play_batch
    from ecomlab.models.load import load_policy
    from ecomlab.models.samplers.cached import Sampled
    from ecomlab.starters.demonstrations import slips_for, transcribe
    from ecomlab.training.objective import dapo_loss, group_advantages
    from ecomlab.training.rollouts import DynamicSampling, collect
    from ecomlab.training.schedule import make_schedule

    policy = load_policy("novice", shop, list(ENVIRONMENTS))
    tasks = [make_task(env, seed % 3, seed, shop) for env in sorted(ENVIRONMENTS) for seed in range(4)]
    scripts = []
    for task in tasks:
        pieces = transcribe(task, shop, slips_for(0.3, "net", task.env, task.seed)).pieces
        scripts.append([policy.renderer.encode(piece) for piece in pieces[1::2]])

    class Scripted:
        def start(self, streams: Any) -> None:
            self.turns = [iter(script) for script in scripts]

        def turn(self, rows: Any, inputs: Any) -> list[Any]:
            said = [next(self.turns[row], policy.renderer.encode("<tool_call>")) for row in rows]
            return [Sampled(ids, [-0.5] * len(ids), truncated=False) for ids in said]

    rollouts = play_batch(
        tasks, [rng("net", i) for i in range(len(tasks))], shop, Scripted(), policy.renderer
    )
    batch = [[r.prompt_ids, r.completion_ids, r.mask, r.end, r.score.correct] for r in rollouts]

    schedule = make_schedule("static-0-2", ["CART", "SUB"])
    sampling = DynamicSampling(prompts=3, group_size=4, rounds=2)
    gathered = collect(schedule, sampling, ("net", 1), shop, policy.sampler(greedy=False), policy.renderer)
    drawn = [
        [g.draw.env, g.draw.level, [r.task.seed if r.task else 0 for r in g.rollouts]]
        for g in gathered.groups
    ]
    loss = torch.zeros(())
    for group in gathered.batch:
        advantages = torch.tensor(group_advantages(group.rewards), dtype=torch.float32)
        for advantage, r in zip(advantages, group.rollouts, strict=True):
            ids = torch.tensor([r.prompt_ids + r.completion_ids])
            logp = torch.log_softmax(policy.model(ids).logits[0, :-1], dim=-1).gather(1, ids[0, 1:, None])[
                :, 0
            ]
            logp = logp[len(r.prompt_ids) - 1 :]
            mask = torch.tensor([r.mask], dtype=torch.float32)
            loss = loss + dapo_loss(logp[None], torch.tensor([r.logprobs]), advantage[None], mask)
    policy.model.zero_grad()
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in policy.model.parameters() if p.grad is not None]).norm()
    return {
        "batch": digest(batch),
        "drawn": digest(drawn),
        "sampled": sum(r.sampled for g in gathered.groups for r in g.rollouts),
        "gradient": round(norm.item(), 4),
    }


def changed(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Name what is not the same in both, by its path."""
    found = []
    for name in now.keys() | before.keys():
        one, other = now.get(name), before.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            found += [f"{name} {inner}" for inner in changed(one, other)]
        elif one != other:
            found.append(name)
    return sorted(found)


def main() -> None:
    """Write the digests as they are now; say which have changed."""
    before = json.loads(FILE.read_text()) if FILE.exists() else {}
    shop, big_shop = load_shop(1_000), load_shop()
    now: dict[str, Any] = {env: measure(env, levels_of(env), shop, big_shop) for env in ENVIRONMENTS}
    now["training"] = training(shop)
    now["versions"] = {env: ENVIRONMENTS[env].version for env in ENVIRONMENTS}
    for name in changed(now, before):
        print(f"{name} changed")
    FILE.write_text(json.dumps(now, indent=1) + "\n")


if __name__ == "__main__":
    main()
