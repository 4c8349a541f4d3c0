"""The code in the documents: Python runs, TOML is what its reader takes, commands and their options exist;
docstrings can be typeset.

A Python block that cannot run by itself has a comment before it that says why: <!-- not run: ... -->. They are counted.
"""

import ast
import inspect
import re
import shlex
import tomllib
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest
import typer

from ecomlab import cli
from ecomlab.evaluation.endpoint.settings import EndpointSettings
from ecomlab.lab.sweep import Sweep

ROOT = Path(__file__).resolve().parent.parent
NOT_RUN = 15
"""Python blocks that are not run: each has its reason beside it."""
SEVERAL_LINES = re.compile(r"\\\n\s*")


class Block(NamedTuple):
    page: Path
    language: str
    code: str
    not_run: str


def blocks(*languages: str) -> list[Block]:
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for match in re.finditer(
            r"(?:<!-- not run: (.+?) -->\s*)?^ *```(\w+)\n(.*?)^ *```",
            page.read_text("utf-8"),
            re.DOTALL | re.MULTILINE,
        ):
            if match[2] in languages:
                found.append(Block(page, match[2], dedent(match[3]), match[1] or ""))
    return found


def name(value: Any) -> str:
    return value.page.name if isinstance(value, Block) else ""


def command_lines() -> list[tuple[Path, str]]:
    return [
        (block.page, line)
        for block in blocks("sh")
        for line in SEVERAL_LINES.sub(" ", block.code).splitlines()
        if line.strip() and not line.startswith("#")
    ]


@pytest.mark.parametrize("block", [b for b in blocks("python") if not b.not_run], ids=name)
def test_python_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block.code, str(block.page), "exec"), {"__name__": "docs"})


def test_what_is_not_run_is_counted_and_can_be_read() -> None:
    left_out = [block for block in blocks("python") if block.not_run]
    assert len(left_out) == NOT_RUN
    for block in left_out:
        compile(block.code, str(block.page), "exec")


def test_every_block_says_its_language() -> None:
    """By which it is run, read or shown."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        fences = re.findall(r"^ *```(.*)$", page.read_text("utf-8"), re.MULTILINE)
        assert all(fences[::2]) and not any(fences[1::2]), page


@pytest.mark.parametrize("block", blocks("toml"), ids=name)
def test_settings_are_those_that_are_read(block: Block) -> None:
    values = tomllib.loads(block.code)
    if block.page.name == "cluster.md":
        assert set(values) <= set(Sweep.model_fields)
    elif "url" in values:
        EndpointSettings(**values)


@pytest.mark.parametrize(("page", "line"), command_lines(), ids=lambda value: str(value)[:40])
def test_commands_and_their_options_exist(page: Path, line: str) -> None:
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words.pop(0)
    if "--wrap" in words:  # sbatch's: the command that it is to run, as one word
        words = shlex.split(words[words.index("--wrap") + 1].removeprefix("exec "))
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in words[1:] if "=" not in word} <= set(targets), line
    elif words[0] == "ecomlab":
        parse(typer.main.get_command(cli.app), words[1:])
    elif words[:2] == ["python", "-m"]:
        assert (ROOT / f"{words[2].replace('.', '/')}.py").is_file(), line
    elif words[0] == "python":
        assert (ROOT / words[1]).is_file(), line
    elif words[0] == "sbatch" or "/" in words[0]:  # a script of ours
        assert (ROOT / next(word for word in words if "/" in word)).is_file(), line
    else:
        assert (
            words[0] in ("pip", "hf", "torchrun", "transformers", "vllm") or line == ". .venv/bin/activate"
        ), line


def parse(command: Any, words: list[str]) -> None:
    """Parse a command's words as the command line would, without running it."""
    while hasattr(command, "commands") and words:
        assert words[0] in command.commands, words[0]
        command, words = command.commands[words[0]], words[1:]
    context = command.context_class(command, info_name="ecomlab")
    command.make_parser(context).parse_args(list(words))


def test_docstrings_can_be_typeset() -> None:
    """Sphinx makes the reference of them, and a warning fails `make docs`."""
    from docutils.frontend import get_default_settings
    from docutils.parsers.rst import Parser
    from docutils.utils import new_document

    parser, wrong = Parser(), []
    settings = get_default_settings(Parser)
    settings.report_level, settings.halt_level, settings.warning_stream = 2, 5, ""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in sorted((ROOT / "ecomlab").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, documented) else None
            if text and re.search(r"[`*|_:\n]", text):  # plain sentences cannot be wrong
                document = new_document(path.name, settings)
                parser.parse(inspect.cleandoc(text), document)
                wrong += [f"{path.name}: {m.astext()}" for m in document.parse_messages]
                wrong += [
                    f"{path.name}: {m.astext()}" for m in document.findall() if m.tagname == "system_message"
                ]
    assert wrong == []
