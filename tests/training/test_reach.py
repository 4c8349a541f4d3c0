"""How far up token limits reach: by hand from a table, measured for starters, and the warnings that follow."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from qwen3_helper import small

from ecomlab import ENVIRONMENTS, Shop, assets, make_task, options
from ecomlab.episode.play import play
from ecomlab.models.policy import PolicyError
from ecomlab.models.qwen3 import load_chat_policy
from ecomlab.training import reach
from ecomlab.training.config import TrainConfig
from ecomlab.training.reach import Reach, Tokens, bisected, lines, reaches
from ecomlab.training.tokens import TABLE, Count, read_table, write_table

CHAT: dict[str, Any] = {
    "starter": "Qwen/Qwen3-8B",
    "turn_tokens": 100,
    "episode_tokens": 200,
    "context_tokens": 1000,
}
ROW = Count("CART", 0, 100, 50, 400, 900, 950, 1000, 1.0, 0.96, 1.0, written=150, turn=80)


@pytest.fixture(autouse=True)
def no_byte_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Qwen's may be in the cache of whoever runs the tests."""
    monkeypatch.setattr(assets, "intact", lambda asset: False)


@pytest.mark.parametrize("first_broken", range(6))
def test_a_bisection_finds_where_it_breaks_with_few_questions(first_broken: int) -> None:
    asked: list[int] = []
    levels = (0, 4, 8, 12, 16)

    def holds(d: int) -> bool:
        asked.append(d)
        return levels.index(d) < first_broken

    found = bisected("CART", levels, holds)
    below, above = levels[:first_broken], levels[first_broken:]
    assert found == Reach("CART", below[-1] if below else None, above[0] if above else None)
    assert len(asked) <= 3


def test_every_limit_counts() -> None:
    config = TrainConfig(**CHAT)
    assert Tokens(1000, 200, 100).within(config)
    for over in (Tokens(1001, 200, 100), Tokens(1000, 201, 100), Tokens(1000, 200, 101)):
        assert not over.within(config)


@pytest.mark.parametrize("over", [{"p99": 1001}, {"written": 201}, {"turn": 101}])
def test_the_reach_of_a_chat_policy_is_that_of_the_table(over: dict[str, Any], tmp_path: Path) -> None:
    table = tmp_path / "tokens.csv"
    write_table(
        [ROW, replace(ROW, d=4, max=2000), replace(ROW, d=8, **over), replace(ROW, env="PD", d=0, **over)],
        table,
    )
    cart, pd, sub = reaches(TrainConfig(**CHAT, collection="CART,PD,SUB"), table)
    assert (cart.holds, cart.breaks) == (4, 8), "the longest of a hundred may be longer"
    assert (pd.holds, pd.breaks) == (None, 0) and "has no row of it" in sub.why
    (gone,) = reaches(TrainConfig(**CHAT), tmp_path / "gone.csv")
    assert gone.holds is None and "there is no" in gone.why


def test_the_committed_table_says_what_the_articles_limits_hold() -> None:
    """SUB's turns are longer than 512 tokens from d = 4 on, JOURNEY's episodes than 8,192."""
    limits = {"turn_tokens": 512, "episode_tokens": 2048, "context_tokens": 8192}
    rows = {(row.env, row.d): row for row in read_table(TABLE)}
    found = {one.env: one for one in reaches(TrainConfig(**{**CHAT, **limits}, collection="C8"), TABLE)}
    for env, one in found.items():
        assert one.holds is not None
        holds, breaks = rows[env, one.holds], rows.get((env, -1 if one.breaks is None else one.breaks))
        assert holds.p99 <= 8192 and holds.written <= 2048 and holds.turn <= 512
        assert breaks is None or breaks.p99 > 8192 or breaks.written > 2048 or breaks.turn > 512
    assert found["CART"].breaks is None and found["JOURNEY"].breaks is not None


def test_a_chat_policy_whose_tokenizer_is_here_is_measured(
    measured: list[Any], shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shares over each limit are those of what is played, and the limits that are suggested hold it all."""
    folder = small(tmp_path / "model", shop)
    monkeypatch.setattr(reach, "COUNTED", (0, 8))
    config = TrainConfig(**{**CHAT, "starter": str(folder), "turn_tokens": 10_000, "context_tokens": 100_000})
    (found,) = reaches(config, tmp_path / "unused")
    renderer = load_chat_policy(folder).renderer
    expected = []
    for d in (0, 8):
        written = []
        for seed in range(3):
            player = ENVIRONMENTS["CART"].reference_player(shop, courteous=True)
            messages = play(player, make_task("CART", d, seed, shop), shop).messages
            said = [renderer.dialogue().say(m) for m in messages if m["role"] == "assistant"]
            written.append(sum(map(len, said)))
        if over := sum(n > 200 for n in written):
            expected.append(f"d = {d}: {over / 3:.0%} over the episode's")
    assert expected and list(found.over) == expected
    head, *_, suggested, _ = lines(config, [found])
    assert "3 a level, played now and counted with its tokenizer" in head
    assert found.breaks is not None and suggested.startswith(
        "limits that hold them at every level counted: --set "
    )
    changes = options.settings(suggested.partition("--set ")[2].split(" --set "))
    (wider,) = reaches(config.replace(**changes), tmp_path / "unused")
    assert wider.breaks is None
    assert measured == [], "starters play another player"


def test_a_qwen3_whose_files_are_not_here_is_counted_with_the_fetched_byte_pairs(
    measured: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    monkeypatch.setattr(reach, "qwen_renderer", made.append)
    monkeypatch.setattr(assets, "intact", lambda asset: True)
    monkeypatch.setattr(assets, "find", lambda name: assets.named(name).path)
    reach._chat_renderer("Qwen/Qwen3-8B")
    assert [path.name for path in made] == ["qwen.tiktoken"]
    monkeypatch.setattr(assets, "intact", lambda asset: False)
    assert reach._chat_renderer("Qwen/Qwen3-8B") is None
    (one,) = reaches(TrainConfig(**CHAT), TABLE)
    assert one.tasks == 0 and one.needs is not None, "the table's"


def said(found: Reach, **settings: Any) -> list[str]:
    return list(lines(TrainConfig(**settings), [found]))


def test_a_schedule_or_an_evaluation_beyond_it_is_warned_of() -> None:
    held = Reach("CART", 4, 5)
    short: dict[str, Any] = {"eval_difficulties": (0, 4)}
    head, line = said(held, schedule="static-0-3", **short)
    assert (
        "turn 256, episode 512, context 2048 tokens" in head and line == "  CART: up to d = 4, not at d = 5"
    )
    (*_, warning) = said(held, schedule="static-0-12", **short)
    assert warning.startswith("warning: CART: the schedule (d = 0 to 12) can go beyond that")
    (*_, warning) = said(held, schedule="static-0-4", eval_difficulties=(0, 6))
    assert warning.startswith("warning: CART: the evaluation (d = 6) can go beyond")
    (*_, warning) = said(held, schedule="adaptive", eval_difficulties=(9,))
    assert "the adaptive schedule (which has no upper end) and the evaluation (d = 9) can go" in warning
    (*_, warning) = said(held, schedule="adaptive", initial_difficulty=7, **short)
    assert "the schedule (d = 4 to 7)" in warning
    assert len(said(Reach("CART", 12, None), schedule="adaptive", eval_difficulties=(12,))) == 2
    assert "at no level; not at d = 0" in said(Reach("CART", None, 0), **short)[1]
    assert said(Reach("CART", None, None, "not measured: x"), **short)[1:] == ["  CART: not measured: x"]


class Words:
    """A renderer whose tokens are words."""

    tokenizer = None

    def encode(self, text: str) -> list[str]:
        return text.split()


@pytest.fixture
def measured(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks that are played; counts go to a cache of their own."""
    from ecomlab.starters import demonstrations, policy

    drawn: list[Any] = []
    real = demonstrations.transcribe

    def play(task: Any, shop: Shop) -> Any:
        drawn.append(task)
        return real(task, shop)

    monkeypatch.setenv("ECOMLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(demonstrations, "transcribe", play)
    monkeypatch.setattr(policy, "made_for", lambda *given: ["for", given[2]])
    monkeypatch.setattr(TrainConfig, "load_shop", lambda _: shop)
    monkeypatch.setattr(reach, "load_policy", lambda *_: SimpleNamespace(renderer=Words()))
    monkeypatch.setattr(reach, "TASKS", 3)
    return drawn


def test_a_starters_reach_is_measured_once(measured: list[Any]) -> None:
    limits: dict[str, Any] = {"turn_tokens": 10_000, "episode_tokens": 20_000, "context_tokens": 40_000}
    config = TrainConfig(**limits)
    assert list(reaches(config, Path("unused"))) == [Reach("CART", 12, None)]
    levels = {task.difficulty for task in measured}
    assert len(measured) == 3 * len(levels) and 12 in levels and len(levels) <= 4
    before = len(measured)
    again = list(reaches(config.replace(turn_tokens=1), Path("unused")))
    assert again == [Reach("CART", None, 0)], "no turn is of one word"
    new = {task.difficulty for task in measured[before:]}
    assert new and not new & levels, "what was counted is kept"
    before = len(measured)
    list(reaches(config.replace(axes={"p_missing": 0}), Path("unused")))
    assert {tuple(task.overrides.items()) for task in measured[before:]} == {(("p_missing", 0),)}


def test_a_measured_reach_lies_between_what_fits_and_what_does_not(measured: list[Any], shop: Shop) -> None:
    config = TrainConfig(turn_tokens=10_000, episode_tokens=20_000, context_tokens=40_000, overlong_buffer=0)
    easy, hard = (reach.played("CART", d, {}, shop, Words()) for d in (0, 12))  # type: ignore[arg-type]
    most = max(one.context for one in easy)
    assert most < max(one.context for one in hard)
    (found,) = reaches(config.replace(context_tokens=most, episode_tokens=most - 1), Path("unused"))
    assert found.holds is not None and found.breaks is not None and found.holds < found.breaks <= 12
    for d, fits in ((found.holds, True), (found.breaks, False)):
        counts = reach.played("CART", d, {}, shop, Words())  # type: ignore[arg-type]
        assert all(one.context <= most and one.written < most for one in counts) == fits


def test_a_starter_that_cannot_be_loaded_is_not_measured(monkeypatch: pytest.MonkeyPatch, shop: Shop) -> None:
    def refused(*_: Any) -> Any:
        raise PolicyError("it was made for something else")

    monkeypatch.setattr(TrainConfig, "load_shop", lambda _: shop)
    monkeypatch.setattr(reach, "load_policy", refused)
    (one,) = reaches(TrainConfig(), Path("unused"))
    assert one.why == "not measured: it was made for something else"
