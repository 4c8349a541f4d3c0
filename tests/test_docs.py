"""What the documents say is so: files and tests they name, links, the laws and their figures, the README's tree.

`python tests/test_docs.py` draws anew what is drawn: in docs/laws.md each law's statement, tests and measure, and the
certificate's figures; in docs/environments.md which axes move which environment, in docs/depth.md which kinds of steps.
"""

import json
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ecomlab import ENVIRONMENTS, Shop, make_task, play
from ecomlab.difficulty import AXES, RANGES, STEPS, Difficulty
from ecomlab.envs.registry import moved_by
from ecomlab.episode.episode import draw_task
from ecomlab.laws.contract import EnvironmentContract
from ecomlab.laws.laws import LAWS, Law
from ecomlab.steps import only

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LAWS_PAGE = ROOT / "docs" / "laws.md"
ENVIRONMENTS_PAGE = ROOT / "docs" / "environments.md"
DEPTH_PAGE = ROOT / "docs" / "depth.md"
MARKS = ("<!-- drawn from experiments/certificate/certificate.json: begin -->", "<!-- end -->")
AXES_MARKS = ("<!-- drawn from ecomlab/envs/observed.json: begin -->", "<!-- end -->")
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def sections(page: Path) -> dict[str, str]:
    """Text under each second-level heading, by heading."""
    parts = re.split(r"^## (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def places_of(page: Path) -> set[str]:
    """The names of a page's headings in links, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_links_and_named_files_and_tests_exist(page: Path) -> None:
    """A path in backticks is one of the repository, or of the package where that is plain."""
    text = page.read_text("utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text)
    assert [link for link, _ in links if not (page.parent / link).exists()] == []
    places = [(page.parent / link if link else page, place) for link, place in links if place]
    assert [place for to, place in places if to.suffix == ".md" and place not in places_of(to)] == []
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*|\w+\.py)`", text)
    assert [
        name for name in named if not any((place / name).exists() for place in (ROOT, ROOT / "ecomlab"))
    ] == []
    for file, names in re.findall(r"(tests/[\w/]+\.py)::(\w+)", text):
        assert f"def {names}(" in (ROOT / file).read_text("utf-8"), (file, names)
    for file, names in re.findall(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", text):
        code = (ROOT / "ecomlab" / file).read_text("utf-8")
        for name in re.findall(r"(\w+)`", names):
            assert re.search(rf"(?:class|def) {name}\b", code), (file, name)


def test_every_page_is_in_the_contents() -> None:
    trees = re.findall(r"```{toctree}\n(.+?)```", (ROOT / "docs" / "index.md").read_text("utf-8"), re.DOTALL)
    listed = {name for tree in trees for name in tree.split()}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} - listed == {"index"}


def test_what_the_glossary_names_is_in_the_code() -> None:
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "ecomlab").rglob("*.py"))
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    rows = re.findall(r"^\| \*\*.+?\*\* \| (.+?) \|", page, re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`(?:\w+\.)?(\w+)`", row)}
    made = re.findall(r"\b(?:class|def) (\w+)|^\s*(\w+)(?:: .+)? = |^\s*(\w+): ", code, re.MULTILINE)
    assert names
    assert names - {name for found in made for name in found} == set()


def test_the_specification_has_difficulty_as_it_is() -> None:
    row = r"\| `([\w.]+)` \| .+? \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$"
    rows = re.findall(row, (ROOT / "docs" / "spec.md").read_text("utf-8"), re.MULTILINE)
    assert [name for name, *_ in rows] == list(RANGES)
    for name, *told in rows:
        values = [Difficulty.at(d).value(name) for d in (0, 6, 12)]
        assert [float(value) for value in told] == pytest.approx(values, abs=0.0051), name


def test_the_readmes_episode_is_played(big_shop: Shop) -> None:
    """The words come in this order in the reference player's episode of this task, one line after another."""
    told = re.search(r"```text\n(.+?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert told
    lines = told[1].splitlines()
    assert len(lines) == 12
    task = make_task("CART", 4, 100, big_shop)
    trajectory = play(ENVIRONMENTS["CART"].reference_player(big_shop), task, big_shop)
    said = [word for message in trajectory.messages[1:] for word in words_of(message)]
    played = iter([*said, *words_of(trajectory.score.why)])
    for line in lines:
        for word in words_of(line)[1:]:
            assert word in played, f"{word!r} in {line!r}"  # which goes on behind the word


def words_of(value: Any) -> list[str]:
    """Words and numbers of a text, or of all texts in a message."""
    text = json.dumps(value, ensure_ascii=False).replace("\\n", " ").replace("\\", "")
    return re.findall(r"[\w.']*\w", text)


def test_the_readmes_tree_is_the_tree() -> None:
    tree = sections(ROOT / "README.md")["The tree"]
    inside = tree[tree.index("ecomlab/\n") : tree.index("\ndocs/")]
    told = set(re.findall(r"^  (\w+(?:\.py|/))", inside, re.MULTILINE))
    there = {f"{p.name}/" for p in (ROOT / "ecomlab").iterdir() if (p / "__init__.py").exists()}
    there |= {p.name for p in (ROOT / "ecomlab").glob("*.py") if not p.name.startswith("__")}
    assert told == there


# --- the laws, and their figures ---


def wrapped(text: str, indent: str = "") -> str:
    """Lines of at most 120 characters, later ones indented."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def held_by(law: Law) -> str:
    """The contract's tests that show a law."""
    marked = [n for n, test in vars(EnvironmentContract).items() if law.name in getattr(test, "laws", ())]
    return ", ".join(f"`{name}`" for name in marked) or "no test yet"


def as_it_is(law: Law, section: str) -> str:
    """A law's section with the statement, the tests and the measure that the code has; what else it says stays."""
    contract, measure = f"- Contract: {held_by(law)}.", f"- Measure: {law.measure}."
    _, _, more = section.strip().partition("\n\n")
    more = re.sub(
        r"^- Contract: .*?(?=^- )", wrapped(contract, "  ") + "\n", more, flags=re.DOTALL | re.MULTILINE
    )
    more = re.sub(r"^- Measure: .*", wrapped(measure, "  "), more, flags=re.DOTALL | re.MULTILINE)
    return f"\n\n{wrapped(law.statement)}\n\n{more}\n\n"


def figures(certificate: dict[str, Any]) -> str:
    """What each environment's cells come to, as a Markdown table."""
    lines = [
        "| environment | oracle | reference | courteous | blind | above chance | perturbed | shortcut | leak |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows = sorted(certificate["rows"], key=lambda row: (row["env"], row["d"]))
    for env, cells in ((env, list(found)) for env, found in groupby(rows, key=lambda row: row["env"])):
        blind = max(sum(cell["blind"][name] for cell in cells) / len(cells) for name in cells[0]["blind"])
        above = max(max(cell["positional"].values(), default=0.0) - cell["chance"] for cell in cells)
        leaks = [(leak["auc"], leak["low"]) for leak in certificate["leaks"] if leak["env"] == env]
        told = "none listed" if not leaks else "{:.2f} (from {:.2f})".format(*max(leaks))
        worst = [f"{min(cell[player] for cell in cells):.1%}" for player in ("solver", "fair", "courteous")]
        ends = [next(cell for cell in cells if cell["d"] == d) for d in (0, 12)]
        falls = [" to ".join(f"{cell[player]:.2f}" for cell in ends) for player in ("noisy", "shortcut")]
        cols = [env, *worst, f"{blind:.1%}", f"{max(0.0, above):.2f}", *falls, told]
        lines.append(f"| {' | '.join(cols)} |")
    found = [line.split(": ", 1) for line in certificate["broken"]]
    broken = {
        law: "; ".join(what for _, what in whats) for law, whats in groupby(found, key=lambda one: one[0])
    }
    asked = [share for share in certificate["understood"] if share["group"] == "all"]
    banks = ", ".join(f"{one['exact']:.1%} of `{one['bank']}` ({one['asks']} asks)" for one in asked)
    levels, others = sorted({row["d"] for row in rows}), sorted({row["others"] for row in rows}, reverse=True)
    small = {
        law: ", ".join(env for env, state in of.items() if state == "not shown")
        for law, of in certificate["laws"].items()
        if "not shown" in of.values()
    }
    lines += [
        "",
        wrapped(
            f"{len(rows)} cells of {rows[0]['seeds']} tasks ({' or '.join(map(str, others))} for each attacker), at "
            f"{len(levels)} levels from d = {levels[0]} to {levels[-1]}. "
            f"Too few to show: {'; '.join(f'{law} ({of})' for law, of in small.items())}. "
            + ("Broken:" if broken else "No law is broken.")
        ),
        "",
        *(wrapped(f"- {law}: {what}.", "  ") for law, what in broken.items()),
        *([""] if broken else []),
        wrapped(f"Understood exactly: {banks}; {sum(one['denied'] for one in asked)} denials."),
        *(wrapped(line) for line in talk(certificate)),
    ]
    return "\n".join(lines)


def talk(certificate: dict[str, Any]) -> Iterator[str]:
    """Yield sentences on what a certificate says of messages, truths and contradictions, where it has them."""
    whole = [one for key in ("heard", "truths") for one in certificate.get(key, ()) if one["group"] == "all"]
    for one in whole:
        if "exact" in one:
            yield f"Messages read exactly: {one['exact']:.1%} of {one['asks']} (`{one['bank']}`)."
        else:
            wrong, right = (sum(one[side].values()) for side in ("wrong", "right"))
            refused = (one["wrong"].get("refused", 0) + one["wrong"].get("named", 0)) / wrong
            shares = [one["right"].get(what, 0) / right for what in ("affirmed", "refused")]
            yield (
                f"Of {wrong} wrong elements of `{one['bank']}` {refused:.1%} are refused or named; of {right} right "
                f"messages {shares[0]:.1%} are affirmed and {shares[1]:.1%} refused."
            )
    if talked := certificate.get("talked"):
        bad, played = (sum(one[key] for one in talked) for key in ("contradicting", "episodes"))
        yield f"In {bad} of {played} talkative episodes a customer contradicts themselves."


def drawn() -> str:
    """docs/laws.md with the laws as they are in the code, and the figures of the committed certificate."""
    certificate = json.loads((ROOT / "experiments" / "certificate" / "certificate.json").read_text())
    text = LAWS_PAGE.read_text("utf-8")
    for name, section in sections(LAWS_PAGE).items():
        if name in LAWS:
            text = text.replace(f"## {name}{section}", f"## {name}{as_it_is(LAWS[name], section)}")
    before, after = text.split(MARKS[0])[0], text.split(MARKS[1])[1]
    return f"{before}{MARKS[0]}\n{figures(certificate)}\n{MARKS[1]}{after}"


def test_the_laws_are_those_of_the_code_and_their_figures_those_of_the_certificate() -> None:
    assert list(sections(LAWS_PAGE)) == [*LAWS, "Figures"]
    assert LAWS_PAGE.read_text("utf-8") == drawn(), "run: python tests/test_docs.py"


def test_the_ladder_on_the_page_is_the_one_that_was_played() -> None:
    played = pd.read_csv(ROOT / "experiments" / "depth" / "ladder.csv").groupby(["player", "d"])
    cells = played[["right", "episodes"]].sum()
    for player in cells.index.unique("player"):
        counts = " | ".join(f"{one.right} of {one.episodes}" for one in cells.loc[player].itertuples())
        assert f"| *{player}* | {counts} |" in DEPTH_PAGE.read_text("utf-8")


# --- which axes move which environment ---


def dots(what: str, names: dict[str, str]) -> str:
    """Dots where an axis moves an environment, as a Markdown table; `names` are the axes by what their rows say."""
    lines = [f"| {what} | {' | '.join(ENVIRONMENTS)} |", f"|---|{':-:|' * len(ENVIRONMENTS)}"]
    for name, axis in names.items():
        moved = ("●" if axis in (moved_by(env) or ()) else "" for env in ENVIRONMENTS)
        lines.append(f"| `{name}` | {' | '.join(moved)} |")
    return "\n".join(lines)


DOTS = {
    ENVIRONMENTS_PAGE: ("axis", {axis: axis for axis in AXES}),
    DEPTH_PAGE: ("kind", {kind: f"steps.{kind}" for kind in STEPS}),
}
"""The pages with a table of dots: what its rows are, and the axis of each."""


def with_dots(page: Path) -> str:
    """A page with its table as it is."""
    before, _, after = page.read_text("utf-8").partition(AXES_MARKS[0])
    return (
        f"{before}{AXES_MARKS[0]}\n\n{dots(*DOTS[page])}\n\n{AXES_MARKS[1]}{after.split(AXES_MARKS[1], 1)[1]}"
    )


@pytest.mark.parametrize("page", DOTS, ids=lambda page: page.name)
def test_the_axes_of_each_environment_are_those_that_were_observed(page: Path) -> None:
    assert page.read_text("utf-8") == with_dots(page), "run: python tests/test_docs.py"


# --- what makes a task hard ---

EXAMPLE = re.compile(r"^`(draw_task\([^`]+\))`\n\n((?:> .+\n)+)", re.MULTILINE)
BARE = {"p_missing": 0, "p_oos": 0, "p_switch": 0, "p_noise": 0}


@cache
def examples() -> dict[str, tuple[str, str]]:
    """The call that draws each kind's example, and what is quoted of its opening."""
    parts = re.split(r"^### (.+)$", DEPTH_PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    found = {kind: EXAMPLE.search(text) for kind, text in zip(parts[::2], parts[1::2], strict=True)}
    return {kind: (one[1], re.sub(r"\n?> ", " ", one[2])) for kind, one in found.items() if one}


def test_each_kind_has_an_example() -> None:
    assert [*examples()] == [*STEPS]


@pytest.mark.parametrize("kind", STEPS)
def test_who_lacks_the_step_of_an_example_fails_there(kind: str, big_shop: Shop) -> None:
    call, quoted = examples()[kind]
    task = eval(call, {"draw_task": draw_task, "only": only, "shop": big_shop, "bare": BARE})
    said = " ".join(" ".join(part.opening for part in (task, *task.subtasks)).split())
    assert [part for part in quoted.split("…") if " ".join(part.split()) not in said] == []
    assert kind in task.steps
    for lacks, right in (((), True), ((kind,), False)):
        player = ENVIRONMENTS[task.env].reference_player(big_shop, lacks=lacks)
        assert play(player, task, big_shop).score.correct == right


if __name__ == "__main__":
    LAWS_PAGE.write_text(drawn(), "utf-8")
    for each in DOTS:
        each.write_text(with_dots(each), "utf-8")
