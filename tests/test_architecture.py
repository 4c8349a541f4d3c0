"""The code seen from outside: who imports whom, what an import costs, who reads the level, and what no file may cite.

`python tests/test_architecture.py` rewrites the diagram of docs/architecture.md and prints what is wrong.
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "ecomlab"
PAGE = ROOT / "docs" / "architecture.md"

ORDER = (
    (
        "the foundations",
        "seeding suggest files own_code other_words values slots wishes settings style arguments tool markup assets",
    ),
    ("the problem's nouns", "catalog task difficulty steps reward answers"),
    ("world and customer", "world customer"),
    ("reference players", "players"),
    ("environments", "envs"),
    ("the loop", "episode"),
    ("what judges, what acts", "laws models evaluation"),
    ("training", "training starters"),
    ("tables and plots", "analysis"),
    ("notebooks, sweeps, viewer", "lab"),
    ("import ecomlab", "ecomlab"),
    ("the edges", "bridges options cli"),
)
"""Layers from the bottom up, and the packages of each: an import goes down or stays in its layer, never up."""
LAYER = {name: number for number, (_, names) in enumerate(ORDER) for name in names.split()}

HEAVY = "torch transformers trl faiss pandas matplotlib datasets sklearn IPython".split()
"""Libraries that `import ecomlab` loads none of."""

DRAWS_AND_VERIFIERS = "answers world customer players envs episode reward".split()
"""Where the level may not be read: what depends on it is a field of `Difficulty`."""

UNAVAILABLE = re.compile(
    r"\b(?:SPEC|DESIGN|FACTS|TRAINED|PLAYED|ATTACKED|CASCADE|UX)(?:'s\b|\.md\b| ?§| law\b| says\b)|\b[Ll]aws? [0-9]+"
)
"""Citations of documents that are not in the repository, and of laws by number; laws have names (docs/laws.md)."""


# --- the graph ---


def name_of(path: Path) -> str:
    """Dotted name of a module; a package's `__init__` has the package's own, `__main__` counts as the command line."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(part for part in parts if part != "__init__")
    return "ecomlab.cli" if name == "ecomlab.__main__" else name


def package_of(module: str) -> str:
    """Name of the folder or module right under `ecomlab`; `ecomlab` itself for what it exports."""
    return module.split(".")[1] if "." in module else module


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names under `ecomlab` that a module imports, wherever in it: functions and TYPE_CHECKING blocks too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "ecomlab")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import: {ast.unparse(node)}"
            if (node.module or "").partition(".")[0] == "ecomlab":
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def trees() -> dict[str, ast.Module]:
    """Syntax trees of all modules of `ecomlab`, by file relative to the repository."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


@cache
def modules() -> "nx.DiGraph[str]":
    """An edge from every module to each module of `ecomlab` that it imports."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(name_of(ROOT / file) for file in trees())
    known = set(graph)
    for file, tree in trees().items():
        for name in imported(tree):
            while name not in known:
                name = name.rpartition(".")[0]
            if name != name_of(ROOT / file):
                graph.add_edge(name_of(ROOT / file), name)
    return graph


@cache
def packages() -> "nx.DiGraph[str]":
    """An edge from every package to each package that one of its modules imports."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(package_of(name) for name in modules())
    graph.add_edges_from((package_of(a), package_of(b)) for a, b in modules().edges)
    graph.remove_edges_from([(name, name) for name in graph])
    return graph


# --- what is wrong with it, each as a list that should be empty ---


def upward() -> list[str]:
    """Imports from a lower layer into a higher one."""
    arrows = [(a, b) for a, b in modules().edges if LAYER[package_of(a)] < LAYER[package_of(b)]]
    return sorted(f"{a} -> {b}" for a, b in arrows)


def circles() -> list[str]:
    """Packages, then modules, that import each other in a circle."""
    found = []
    for graph in (packages(), modules()):
        groups = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
        found += sorted(", ".join(name.removeprefix("ecomlab.") for name in group) for group in groups)
    return found


def level_reads() -> list[str]:
    """Expressions in draws and verifiers that read the level, or make their own function of it."""
    found = {
        f"{file}: {ast.unparse(node)}"
        for file, tree in trees().items()
        if package_of(name_of(ROOT / file)) in DRAWS_AND_VERIFIERS
        for node in ast.walk(tree)
        if reads_level(node)
    }
    return sorted(found)


def reads_level(node: ast.AST) -> bool:
    """Whether this is `key[2]`, a name `level`, an attribute `.level` or `.difficulty`, or a sigmoid's `math.exp`."""
    match node:
        case ast.Subscript(value=ast.Name(id="key") | ast.Attribute(attr="key"), slice=ast.Constant(value=2)):
            return True
        case ast.Attribute(attr="level" | "difficulty") | ast.Name(id="level"):
            return True
        case ast.Attribute(value=ast.Name(id="math"), attr="exp"):
            return True
        case ast.Assign(targets=[ast.Tuple()], value=ast.Name(id="key") | ast.Attribute(attr="key")):
            return True
    return False


def citations() -> list[str]:
    """Places that cite what a reader of the repository cannot open, or a law by its number."""
    found = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(set(folders) - SKIPPED)  # .venv alone has more files than all else
        for path in (Path(folder, name) for name in sorted(files)):
            named = path.suffix in TEXTS or path.name in ("Makefile", "run")
            if named and path != Path(__file__) and path.is_file():
                cited = UNAVAILABLE.findall(path.read_text("utf-8"))
                found |= {f"{path.relative_to(ROOT).as_posix()}: {m}" for m in cited}
    return sorted(found)


SKIPPED = {".git", ".venv", "runs", "__pycache__", ".ipynb_checkpoints", "build", "dist"}
TEXTS = {".py", ".md", ".toml", ".ipynb", ".yml", ".yaml", ".cff", ".txt"}
CHECKS = {"upward": upward, "circles": circles, "level reads": level_reads, "citations": citations}


@pytest.mark.parametrize("check", CHECKS)
def test_the_architecture_is_kept(check: str) -> None:
    """No import goes up, no circle, no reader of the level but `difficulty`, no citation that leads nowhere."""
    assert CHECKS[check]() == []


def test_every_package_has_its_place() -> None:
    assert set(packages()) <= set(LAYER), "name it in ORDER"


IMPORTING = """
import json, sys
opened = []
sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == "open" else None)
import ecomlab
heavy = [name for name in sys.argv[1:] if name in sys.modules]
read = [path for path in opened if path.endswith(("rules.toml", "vocabulary.toml"))]
ecomlab.ENVIRONMENTS["POLICY"]
print(json.dumps([heavy, read, sum(path.endswith("rules.toml") for path in opened)]))
"""


def test_importing_ecomlab_is_light() -> None:
    """It loads no heavy library and reads neither rules nor vocabulary, which are read where they are used."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, *HEAVY], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert json.loads(done.stdout) == [[], [], 1]


HELPING = """
import sys
from ecomlab.__main__ import main
sys.argv[1:] = ["--help"]
try:
    main()
finally:
    assert not {"numpy", "pydantic", "ecomlab.envs.base"} & sys.modules.keys()
"""


def test_the_command_line_starts_without_the_package() -> None:
    subprocess.run([sys.executable, "-c", HELPING], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


SEARCHING = """
import sys, ecomlab
assert ecomlab.load_shop(1_000).engine.search("wool cardigan", top_k=5)
assert not {"sklearn", "pandas", "ecomlab.catalog.ingest.build"} & sys.modules.keys()
"""


def test_the_first_search_imports_faiss_alone() -> None:
    subprocess.run([sys.executable, "-c", SEARCHING], check=True, cwd=ROOT)


# --- the page ---

MARKS = ("<!-- drawn by tests/test_architecture.py: begin -->", "<!-- end -->")


def drawing() -> str:
    """A Mermaid diagram and a table of the packages' imports, as Markdown.

    The diagram leaves out an arrow wherever a longer way leads along others; the table holds all.
    """
    graph = packages()
    drawn = nx.transitive_reduction(graph) if nx.is_directed_acyclic_graph(graph) else graph
    lines = ["```mermaid", "flowchart TD"]
    for number, (title, names) in reversed(list(enumerate(ORDER))):
        there = [name for name in names.split() if name in graph]
        if there:
            lines += [f'  subgraph layer{number}["{title}"]', *(f"    {name}" for name in there), "  end"]
    lines += [f"  {a} --> {b}" for a, b in sorted(drawn.edges)]
    lines += ["```", "", "| package | imports |", "|---|---|"]
    for name in sorted(graph, key=lambda name: (-LAYER[name], name)):
        uses = sorted(graph.successors(name), key=lambda used: (LAYER[used], used))
        lines.append(f"| {name} | {', '.join(uses) or 'nothing'} |")
    return "\n".join(lines)


def page() -> str:
    """docs/architecture.md with the drawing of today's imports in its place."""
    before, after = (PAGE.read_text("utf-8").split(mark) for mark in MARKS)
    return f"{before[0]}{MARKS[0]}\n{drawing()}\n{MARKS[1]}{after[1]}"


def test_the_diagram_shows_todays_imports() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python tests/test_architecture.py"


# --- the checks themselves can fail ---


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    for check, wrong in CHECKS.items():
        print(f"{check}:", *(wrong() or ["nothing"]), sep="\n  ")
