"""The contract that every environment keeps: run it with `check`, or inherit its tests.

A test class that inherits `EnvironmentContract` runs under pytest with the fixtures `env`, `shop` (a thousand products)
and `big_shop`.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle
from typing import Any
from unittest.mock import patch

from ecomlab.catalog import Shop, load_shop
from ecomlab.customer.nlu import is_complete
from ecomlab.envs.registry import ENVIRONMENTS, observed
from ecomlab.episode.episode import Episode, make_task, system_of
from ecomlab.episode.messages import parse_output
from ecomlab.episode.play import ReplayError, finish, play, record, replay
from ecomlab.laws import attackers, counterfactual, laws, leaks, opening_leaks
from ecomlab.laws.certificate import CHAINED, certify_cell
from ecomlab.laws.observed import axes_of, scores_digest, tasks_digest
from ecomlab.laws.tool_introspection import acts, calls, fields, ids_of, reference_player, results
from ecomlab.players.base import Perturbation
from ecomlab.seeding import rng
from ecomlab.suggest import raised
from ecomlab.task import Message, Place, Task
from ecomlab.wishes import Wish
from ecomlab.world.joint import SLOTS
from ecomlab.world.state import World

SEEDS, OTHERS = 12, 8
"""Tasks per level for oracle, reference and perturbed player, and for attackers; `make certify` takes more."""
ENDS = (0, 12)
"""Levels of the small certificate, which plays every attacker."""
COMPARED = (0, 4, 8, 12)
"""Levels at which tasks are compared with their counterfactuals."""
ODD: tuple[Any, ...] = (
    "15 days", "$7.99", "nan", "-15", "", None, [], {}, 1e308, True, "\ud800", "x" * 10_000,
)  # fmt: skip
"""Values submitted in any field."""
LAST: tuple[str, ...] = (
    "<tool_call>{bad</tool_call>", "<tool_call>", '<tool_call>{"name": "nope", "arguments": {}}</tool_call>',
    '<tool_call>{"name": "submit", "arguments": {"nope": 1}}</tool_call>', "x" * 30_000, "Hello?",
)  # fmt: skip
"""Outputs of a player before it submits."""
Test = Callable[..., None]


def shows(*names: str) -> Callable[[Test], Test]:
    """Mark a test with the laws that it tests."""

    def mark(test: Test) -> Test:
        test.laws = [laws.LAWS[name].name for name in names]  # type: ignore[attr-defined]
        return test

    return mark


class EnvironmentContract:
    """The laws as tests of one environment; `make certify` measures some of them on more tasks."""

    levels: Iterable[int] = range(13)
    """What is asked of every level is asked of these."""

    @shows("SOLVABLE", "FAIR", "NOT GAMEABLE", "HARDER", "TALKED THROUGH")
    def test_a_small_certificate_breaks_no_law(self, env: str, big_shop: Shop) -> None:
        rows = [certify_cell(env, d, SEEDS, _fewer(env, OTHERS), big_shop) for d in ENDS]
        broken = laws.broken_laws(laws.Evidence(rows))
        assert not broken, _in_short(broken)
        for row in rows:
            assert row.reward > 0.85 or row.fair < 1, (
                f"the reference player loses reward: d = {row.d}: {row.reward}"
            )

    @shows("SOLVABLE", "FAIR")
    def test_oracle_and_reference_player_are_right_at_every_level(self, env: str, big_shop: Shop) -> None:
        tasks, missed = list(_tasks(env, self.levels, 6, big_shop)), []
        for task in tasks:
            episode, where = Episode(task, big_shop), f"d = {task.difficulty}, seed {task.seed}"
            score = finish(ENVIRONMENTS[env].oracle(episode), episode).score
            assert score.correct, f"the oracle is not correct at {where}: {score.why}"
            score = play(reference_player(env, big_shop), task, big_shop).score
            missed += [] if score.correct else [f"{where}: {score.why}"]
        share = 1 - len(missed) / len(tasks)
        assert laws.at_least(share, len(tasks), laws.FAIR) is not laws.State.BROKEN, (
            f"the reference player is correct on {share:.1%} of {len(tasks)} tasks; it missed {'; '.join(missed[:3])}"
        )

    @shows("FAIR")
    def test_what_counts_as_stated_can_be_read_from_the_opening(self, env: str, big_shop: Shop) -> None:
        for task in _tasks(env, self.levels, _fewer(env, 40), big_shop):
            goal = task.parts[0].goal
            read = reference_player(env, big_shop).read_opening(task.opening)
            assert is_complete(task.opening) == (not goal.withheld), task.opening
            heard = _by_place({place: value for place, value in read.items() if place[1] != "type"})
            stated = _by_place({(s.item, s.name): s.value for s in goal.said()})
            stated |= {(0, name): value for name, value in goal.asks.items()}
            wrong = [place for place in {**heard, **stated} if heard.get(place) != stated.get(place)]
            assert not wrong, (
                f"slot {wrong[0]} is {stated.get(wrong[0])!r}, read as {heard.get(wrong[0])!r}: {task.opening}"
            )

    @shows("BY EFFECT")
    def test_submit_takes_anything_and_gives_a_verdict(self, env: str, shop: Shop) -> None:
        task = make_task(env, 3, 0, shop)
        for value in ODD:
            for name in fields(ENVIRONMENTS[env].submit) or ("nothing",):
                episode = Episode(task, shop)
                episode.act(calls(("submit", {name: value})))
                if episode.done:
                    score = episode.score()
                    assert -1 <= score.value <= 1, (name, value)
                    assert not score.correct, (name, value)
                    assert score.why, (name, value)

    @shows("BY EFFECT")
    def test_there_are_faults_exactly_where_the_verdict_is_not_correct(self, env: str, shop: Shop) -> None:
        for task in _tasks(env, (2, 7), _fewer(env, 4), shop):
            for rate in (0.0, 0.3):
                episode = Episode(task, shop)
                slips = Perturbation(rng("faults", task.seed), rate)
                finish(reference_player(env, shop, slips), episode)
                for subtask in episode.subtasks:
                    given = (subtask.goal, subtask.world, subtask.answer or {}, subtask.first)
                    verdict, found = subtask.env.judge(*given), subtask.env.audit.found(*given)
                    assert bool(found) != verdict.correct, (task.seed, verdict.why, found)

    @shows("ONE RECORD")
    def test_no_placeholder_reaches_a_message(self, env: str, shop: Shop) -> None:
        for task in _tasks(env, self.levels, 6, shop):
            mistakes = Perturbation(rng("placeholder", task.seed), 0.2)
            for message in play(reference_player(env, shop, mistakes), task, shop).messages:
                if message["role"] in ("user", "system"):
                    text = message["content"]
                    assert text == text.strip() != "", text
                    text = re.sub(r"(^|[.!?] )None(?= [a-z])", r"\1No", text)  # "None by HearthMint, please."
                    for bad in ("{", "}", "None", "attr:", "  ", " .", " ,", "[]", "()"):
                        assert bad not in text, text

    @shows("ONE RECORD")
    def test_a_task_survives_json_in_any_order_of_its_keys(self, env: str, big_shop: Shop) -> None:
        for task in _tasks(env, self.levels, 2, big_shop):
            messages = play(reference_player(env, big_shop), task, big_shop).messages
            for sorted_ in (False, True):
                again = Task.from_json(json.loads(json.dumps(task.to_json(), sort_keys=sorted_)))
                assert again.digest() == task.digest(), (
                    f"seed {task.seed} is another task after JSON: use lists for whatever has no order of its own"
                )
                assert play(reference_player(env, big_shop), again, big_shop).messages == messages, (
                    f"seed {task.seed} is played otherwise after JSON: use lists for whatever has an order"
                )

    @shows("REPRODUCIBLE")
    def test_a_key_never_changes_its_meaning_without_a_new_version(self, env: str) -> None:
        known = observed().get(env, {})
        version = ENVIRONMENTS[env].version
        if known.get("version") == version:
            assert known["tasks"] == tasks_digest(env, load_shop(1_000)), (
                f"tasks of {env} changed: raise its version, then run `python -m ecomlab.laws.observed`"
            )

    @shows("REPRODUCIBLE")
    def test_scores_are_those_that_were_observed(self, env: str) -> None:
        known = observed().get(env, {})
        if known.get("version") == ENVIRONMENTS[env].version:
            assert known["scores"] == scores_digest(env, load_shop(1_000)), (
                f"scores of {env} changed: run `python -m ecomlab.laws.observed`; "
                "scores from before are no longer comparable"
            )

    @shows("REPRODUCIBLE")
    def test_a_recorded_trajectory_replays_to_its_score(self, env: str, big_shop: Shop) -> None:
        for task in _tasks(env, self.levels, 3, big_shop):
            trajectory = play(
                reference_player(env, big_shop, Perturbation(rng("replay", task.seed), 0.2)), task, big_shop
            )
            assert replay(trajectory, big_shop) == trajectory.score

    @shows("REPRODUCIBLE")
    def test_whatever_was_said_last_replays(self, env: str, shop: Shop) -> None:
        acting = [parse_output(said) for said in LAST] + [
            calls((tool.name, {})) for tool in acts(ENVIRONMENTS[env])
        ]
        for said in acting:
            episode = Episode(make_task(env, 2, 0, shop), shop)
            episode.act(said)
            while not episode.done:
                episode.act(attackers.SUBMIT)
            trajectory = record(episode)
            assert replay(trajectory, shop) == trajectory.score

    @shows("REPRODUCIBLE")
    def test_a_replay_that_differs_says_where(self, env: str, shop: Shop) -> None:
        trajectory = play(reference_player(env, shop), make_task(env, 4, 1, shop), shop)
        at = next(i for i, m in enumerate(trajectory.messages) if m["role"] == "tool")
        changed = [dict(m) for m in trajectory.messages]
        changed[at]["content"] = "{}"
        try:
            replay(replace(trajectory, messages=changed), shop)
        except ReplayError as error:
            assert f"message {at} differs" in str(error)  # noqa: PT017 - this module does without pytest
        else:
            raise AssertionError("a changed record was replayed")

    @shows("ISOLATED")
    def test_interleaved_and_threaded_episodes_do_not_touch_each_other(self, env: str, shop: Shop) -> None:
        tasks = list(_tasks(env, (2, 7, 12), 4, shop))
        drawn = [task.digest() for task in tasks]

        def alone(task: Task) -> list[Message]:
            return play(reference_player(env, shop), task, shop).messages

        expected = [alone(task) for task in tasks]
        running = [(Episode(task, shop), reference_player(env, shop)) for task in tasks]
        while any(not episode.done for episode, _ in running):
            for episode, act in running:
                if not episode.done:
                    episode.act(act(episode.messages, episode.tools))
        assert [episode.messages for episode, _ in running] == expected
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(alone, tasks * 2)) == expected * 2
        # Histories and policy books are drawn once and shared: nobody may have changed one.
        assert [task.digest() for task in tasks] == drawn
        assert [make_task(env, task.difficulty, task.seed, shop).digest() for task in tasks] == drawn

    @shows("SILENT")
    def test_what_is_withheld_shows_nowhere_until_the_customer_is_asked(
        self, env: str, big_shop: Shop
    ) -> None:
        count = _fewer(env, 16)
        for d in COMPARED:
            pairs, more = 0, iter((range(count), range(count, 10 * count)))
            while pairs < 5 and (
                seeds := next(more, None)
            ):  # where a customer withholds little, among more tasks
                compared = counterfactual.compare(env, d, seeds, big_shop)
                assert not compared.differences, compared.differences
                pairs += compared.pairs
            able = sum(any(_withheld(task)) for task in _tasks(env, (d,), count, big_shop))
            least = (
                5 if 0 < d < 12 else min(5, able // 2)
            )  # at d = 12, STATUS speaks of orders by links alone
            assert pairs >= least, f"d = {d}: {pairs} pairs; does `alternatives` name other values?"

    @shows("SILENT")
    def test_a_counterfactual_is_another_task_that_can_be_done(self, env: str, shop: Shop) -> None:
        for task, other in (pair for d in (6, 12) for pair in counterfactual.pairs(env, d, range(10), shop)):
            assert other.digest() != task.digest()
            episode = Episode(other, shop)
            score = finish(ENVIRONMENTS[env].oracle(episode), episode).score
            assert score.correct, (other.difficulty, other.seed, score.why)

    @shows("SILENT")
    def test_ids_and_places_do_not_tell_what_is_wanted(self, env: str, big_shop: Shop) -> None:
        found = [
            leak
            for leak in leaks.measure(env, big_shop, seeds=20 if not ENVIRONMENTS[env].composes else 15)
            if leak.leaks
        ]
        assert not found, "; ".join(
            f"ids, places, flags or contents in {leak.kind} tell {leak.what}, AUC {leak.auc:.2f}"
            for leak in found
        )

    @shows("SILENT")
    def test_nothing_that_is_said_foretells_what_will_happen_or_is_withheld(
        self, env: str, big_shop: Shop
    ) -> None:
        """What a journey's first words tell, its jobs' own openings tell as well."""
        found = [
            leak
            for leak in opening_leaks.opening_leaks(env, big_shop, (4, 8), _fewer(env, 340))
            if leak.leaks
        ]
        assert not found, "; ".join(f"{leak.kind} tells {leak.what}, AUC {leak.auc:.2f}" for leak in found)

    @shows("SILENT")
    def test_no_tool_shows_what_is_withheld(self, env: str, shop: Shop) -> None:
        found = leaks.told(env, shop, seeds=_fewer(env, 20))
        assert not found, "; ".join(found)

    @shows("SILENT")
    def test_tools_are_what_they_declare(self, env: str, shop: Shop) -> None:
        """Tools that do not act change nothing and list ids only where declared; the others can change the world."""
        environment = ENVIRONMENTS[env]
        tools, ids = environment.offered, ids_of(environment)
        for task in _tasks(env, (0, 6, 12), 4, shop):
            episode = Episode(task, shop)
            prober, before = counterfactual.Prober(environment, rng("declared", task.seed)), _done(episode)
            while not episode.done:
                episode.act(prober(episode.messages, episode.tools))
            assert _done(episode) == before, "a tool that declares no act has changed the world"
            for name, result in results(episode.messages):
                for path, rows in _lists(result):
                    found = [n for n in rows[0] if n in ids or n.endswith("_id")]
                    declared = tools[name].lists.get(path, ())
                    assert set(found) <= set(declared), f"{name} does not declare {path}: {found}"
        for tool in acts(environment):
            trying = [
                make for n, make in attackers.positional(environment).items() if n.startswith(tool.name)
            ]
            done = False
            for task, make in zip(_tasks(env, (0, 6), 16, shop), cycle(trying), strict=False):
                episode, player = Episode(task, shop), make(task.seed)
                before = _done(episode)
                while not episode.done:
                    episode.act(player(episode.messages, episode.tools))
                done = _done(episode) != before
                if done:
                    break
            assert done or not trying, f"{tool.name} declares that it acts, but changes nothing"

    @shows("SILENT")
    def test_what_is_offered_is_the_same_in_every_task(self, env: str, shop: Shop) -> None:
        first = Episode(make_task(env, 0, 0, shop), shop)
        for task in _tasks(env, (0, 6, 12), 5, shop):
            episode = Episode(task, shop)
            assert episode.tools == first.tools
            alike = replace(task, turns=first.task.turns, calls=first.task.calls)  # the budgets are told
            assert system_of(alike) == first.messages[0]["content"]

    @shows("SILENT")
    def test_no_tool_returns_reward(self, env: str, shop: Shop) -> None:
        for task in _tasks(env, (0, 6, 12), 3, shop):
            for _, result in results(play(reference_player(env, shop), task, shop).messages):
                assert not {"reward", "score", "correct"} & result.keys()

    @shows("BROKEN IS NOT WRONG")
    def test_a_player_that_breaks_leaves_the_episode_unscored(self, env: str, shop: Shop) -> None:
        def broken(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
            raise TimeoutError("the endpoint is down")

        trajectory = play(broken, make_task(env, 1, 0, shop), shop)
        assert trajectory.score.unscored
        assert trajectory.score.value != trajectory.score.value  # NaN
        assert "the endpoint is down" in trajectory.score.why

    @shows("BROKEN IS NOT WRONG")
    def test_a_bug_of_ours_leaves_the_episode_unscored(self, env: str, shop: Shop) -> None:
        with patch.object(World, "spend_call", side_effect=ZeroDivisionError):
            assert play(reference_player(env, shop), make_task(env, 1, 0, shop), shop).score.unscored

    def test_the_axes_that_move_it_are_those_that_were_observed(self, env: str, big_shop: Shop) -> None:
        if env in observed():
            assert axes_of(env, big_shop, observed()) == observed()[env]["axes"]


def check(env: str, shop: Shop) -> list[str]:
    """Test one environment; list its violations of the contract in words, its own exceptions included.

    An empty list says that nothing is broken on these few tasks; `ecomlab.laws.certificate` plays more.
    """
    found = []
    for name, test in inspect.getmembers(EnvironmentContract(), inspect.ismethod):
        if name.startswith("test_"):
            given = {"env": env, "shop": shop, "big_shop": shop}
            try:
                test(**{n: given[n] for n in inspect.signature(test).parameters})
            except Exception as error:
                held = ", ".join(getattr(test, "laws", ())) or "contract"
                said = str(error) if isinstance(error, AssertionError) else raised(error)
                found.append(f"{held}: not so: {name.removeprefix('test_').replace('_', ' ')}: {said}")
    return found


def _in_short(broken: Sequence[str]) -> str:
    """Join violations of laws: for each law, the first two findings and the number of the others."""
    by_law: dict[str, list[str]] = {}
    for finding in broken:
        by_law.setdefault(finding.partition(":")[0], []).append(finding)
    return "; ".join(
        "; ".join(found[:2]) + f" (and {len(found) - 2} more of this law)" * (len(found) > 2)
        for found in by_law.values()
    )


def _fewer(env: str, tasks: int) -> int:
    return tasks // CHAINED if ENVIRONMENTS[env].composes else tasks


def _by_place(slots: Mapping[Place, Any]) -> dict[Any, Any]:
    """Index slots by place, but a demand that itself names the items it is about by what it is: it belongs to all of
    them."""
    own = {place for place, value in slots.items() if place[1] in SLOTS and isinstance(value, Wish)}
    return {value if place in own else place: value for place, value in slots.items()}


def _withheld(task: Task) -> Iterator[bool]:
    """Tell of each subtask whether its customer withholds anything."""
    return (bool(part.goal.withheld) for part in task.parts)


def _tasks(env: str, levels: Any, seeds: int, shop: Shop) -> Iterator[Task]:
    return (make_task(env, d, seed, shop) for d in levels for seed in range(seeds))


NO_ACT = (
    "shop",
    "catalog",
    "calls",
    "shown",
    "shown_pairs",
    "touched",
    "gone",
    "left",
    "kept",
    "news",
    "_calls_told",
)
"""Parts of a world that no agent changes, that record what it has seen, or that events change."""


def _done(episode: Episode) -> str:
    """Describe the part of the world that an agent can change."""
    return repr({name: value for name, value in vars(episode.world).items() if name not in NO_ACT})


def _lists(result: Any, path: str = "") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield (path, rows) of every list of objects in a result."""
    for name, value in result.items() if isinstance(result, dict) else ():
        at = f"{path}.{name}".lstrip(".")
        rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
        if rows:
            yield at, rows
        for inner in rows or [value]:
            yield from _lists(inner, at)
