"""Strict papermill: parameters are checked before anything executes, and each run has its own folder."""

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ecomlab.lab.paths import shown
from ecomlab.suggest import unknown

INJECTED = "# Parameters"
"""How the cell begins in which papermill sets parameters."""
EXECUTED = "notebook.ipynb"  # the executed copy, in the run's folder


class NotebookError(ValueError):
    """A notebook that cannot be run with these parameters, or that failed. The message is for the user."""


@dataclass(frozen=True)
class Parameter:
    """One line of the cell tagged `parameters`: `name: annotation = default`."""

    name: str
    annotation: str
    default: Any


def parameters_of(notebook: Path) -> dict[str, Parameter]:
    """Read the declared parameters, in order.

    Raises NotebookError when the file is no notebook, when not exactly one code cell is tagged `parameters`,
    or when that cell holds anything but annotated literals (papermill would silently ignore it).
    """
    if not notebook.is_file():
        near = sorted(str(p.name) for p in notebook.parent.glob("*.ipynb"))
        raise NotebookError(
            f"in {shown(notebook.parent)}/ there is {unknown('notebook', notebook.name, near)}"
        )
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        tagged = ["".join(c["source"]) for c in code if "parameters" in c["metadata"].get("tags", ())]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise NotebookError(f"{shown(notebook)} is not a notebook: {e!r}") from e
    if len(tagged) != 1:
        raise NotebookError(
            f"{shown(notebook)} has {len(tagged)} code cells tagged 'parameters', not one; papermill "
            "would silently use the notebook's own values (JupyterLab sets tags in its Property Inspector)"
        )
    declared = {}
    for statement in ast.parse(tagged[0]).body:
        parameter = _parameter(statement)
        if parameter is None:
            raise NotebookError(
                f"the parameters cell of {shown(notebook)} says `{ast.unparse(statement)}`; every line there "
                "is an annotated literal, such as `seed: int = 0`"
            )
        declared[parameter.name] = parameter
    return declared


def fit(notebook: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Override the notebook's own parameters by `given`; return the result and a message for each mistake in `given`.

    Mistakes are left out: undeclared parameters, and values of another type than the default's. Raises NotebookError
    like `parameters_of`.
    """
    declared = parameters_of(notebook)
    effective, mistakes = {p.name: p.default for p in declared.values()}, []
    for name, value in given.items():
        if name not in declared:
            mistakes.append(f"{shown(notebook)} has {unknown('parameter', name, declared)}")
        elif not _fits(value, declared[name]):
            wanted = f"{name}: {declared[name].annotation}"
            mistakes.append(f"{shown(notebook)} wants {wanted}, not {type(value).__name__} {value!r}")
        else:
            effective[name] = value
    return effective, mistakes


def check(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Merge as `fit` does. Raises NotebookError with a line for each mistake."""
    effective, mistakes = fit(notebook, given)
    if mistakes:
        raise NotebookError("\n".join(mistakes))
    return effective


def execute(notebook: Path, folder: Path, given: Mapping[str, Any], log: TextIO) -> None:
    """Run `notebook` with checked parameters in `folder`, where the executed copy goes; print to `log`.

    papermill changes the working directory meanwhile, so call this in a separate process, as `ecomlab.lab.worker` does.
    Raises NotebookError with the failed cell and its traceback.
    """
    import papermill  # costs a second: not needed to check parameters

    folder.mkdir(parents=True, exist_ok=True)
    try:
        papermill.execute_notebook(
            _literal(notebook),
            _literal(folder / EXECUTED),
            parameters=dict(given),
            kernel_name="python3",
            language="python",
            cwd=str(folder),
            progress_bar=False,
            stdout_file=log,
            stderr_file=log,
        )
    except papermill.PapermillExecutionError as e:
        trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(e.traceback)) or f"{e.ename}: {e.evalue}"
        raise NotebookError(f"{shown(notebook)} failed in cell [{e.exec_count}]:\n{trace}") from None


def check_parameters(names: Mapping[str, Any]) -> None:
    """Check in a notebook's second code cell, given its `globals()`, that papermill's own command set only declared
    parameters. Raises NotebookError."""
    declared = names.get("__annotations__", {})
    for source in names.get("In", ()):
        for statement in ast.parse(source).body if source.startswith(INJECTED) else ():
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)]) if name not in declared:
                    raise NotebookError(f"the notebook has {unknown('parameter', name, declared)}")


def _parameter(statement: ast.stmt) -> Parameter | None:
    """Read a declaration; None if `statement` is no annotated literal."""
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
            with suppress(ValueError):
                return Parameter(name, ast.unparse(annotation), ast.literal_eval(value))
    return None


def _fits(value: Any, declared: Parameter) -> bool:
    """Tell whether `value` has the default's type; any does where the default is None."""
    if declared.default is None or (value is None and "None" in declared.annotation):
        return True
    wanted = type(declared.default)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted in (list, tuple):
        items = {type(v) for v in declared.default}
        return isinstance(value, list | tuple) and (not items or {type(v) for v in value} <= items)
    return type(value) is wanted


def _literal(path: Path) -> str:
    """Double the braces in a path: papermill formats paths with str.format."""
    return str(path.absolute()).replace("{", "{{").replace("}", "}}")
