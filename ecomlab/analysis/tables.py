"""Strict readers of an experiment's two tables and of a certificate: a mistake is named with its file and line."""

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WrapValidator, create_model

from ecomlab.envs.registry import COLLECTIONS
from ecomlab.suggest import mistakes, unknown

if TYPE_CHECKING:
    from ecomlab.laws import certificate

RUN = ["schedule", "collection", "seed"]
"""Columns that identify a run."""


class TableError(ValueError):
    """A table that cannot be used. The message names the file, the column and the line."""


def _or_nothing(text: Any, read: Callable[[Any], float]) -> float:
    """Read a number; NaN if it is absent."""
    return math.nan if str(text).strip().lower() in ("", "nan") else read(text)


Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1), WrapValidator(_or_nothing)]
Reward = Annotated[float, Field(ge=-1, le=1), WrapValidator(_or_nothing)]
Number = Annotated[float, WrapValidator(_or_nothing)]


class Row(BaseModel):
    """A line about a training run. Columns that are not declared stay text."""

    model_config = ConfigDict(extra="allow")
    schedule: Text
    collection: Text
    seed: int
    step: Count
    env: Text


class TrainRow(Row):
    """One environment in one training step, at one level."""

    d: Count
    d_low: Count
    d_high: Count
    success: Share
    reward: Reward
    effective_reward: Share
    effective_correct: Share
    groups: Count
    discarded: Count
    rollouts: Count  # of discarded groups too
    tokens_generated: Count
    tokens_used: Count
    seconds: Annotated[float, Field(ge=0)]


MORE = (
    "kept", "padding", "rounds", "unscored", "truncated", "invalid", "failed", "tokens_wasted", "sampled_per_episode",
    "sampled_longest", "turns_per_episode", "entropy", "clip_share", "grad_norm", "logp_gap", "logp_gap_max",
    "seconds_model", "seconds_environment", "seconds_waiting", "seconds_logprobs", "seconds_update", "seconds_sync",
    "seconds_evaluation", "seconds_other",
)  # fmt: skip
"""Numbers that train.csv may have."""
_OPTIONAL: dict[str, Any] = dict.fromkeys(MORE, (Number, math.nan))
TrainRowAndMore = create_model("TrainRowAndMore", __base__=TrainRow, **_OPTIONAL)


class EvalRow(Row):
    """Held-out success at one difficulty."""

    d: Count
    axes: str = ""
    block: Count = 0
    episodes: Count
    success: Share
    reward: Reward
    unscored: Count
    decoding: Literal["sampled", "greedy"]


def load_train(path: str | Path) -> pd.DataFrame:
    """Read train.csv: a row per run, step, environment and level, sorted. Raises TableError."""
    table = _load(Path(path), TrainRowAndMore, [*RUN, "step", "env", "d"])
    wrong = table[table.d_low > table.d_high]
    if len(wrong):
        row = wrong.iloc[0]
        raise TableError(f"{path}, line {row.name}: d_low is {row.d_low} and d_high {row.d_high}")
    return _sorted(table, [*RUN, "env", "step", "d"])


def load_eval(path: str | Path) -> pd.DataFrame:
    """Read eval.csv: a row per run, step, environment, difficulty, block of tasks and decoding, sorted. Raises
    TableError. A table of an older ecomlab has neither `axes` nor `block`; it was of block 0."""
    table = _load(Path(path), EvalRow, [*RUN, "step", "env", "d", "axes", "block", "decoding"])
    return _sorted(table, [*RUN, "env", "decoding", "d", *(["block"] if "block" in table else []), "step"])


def load_episodes(path: str | Path) -> pd.DataFrame:
    """Read episodes.csv of a run: a row per evaluation and held-out episode, sorted; `heldout.EPISODE` explains the
    columns. Raises TableError."""
    with _made_by(path, "table of episodes", "a training run"):
        found = pd.read_csv(path, dtype={"axes": str}).fillna({"axes": ""})
        return _sorted(found, [*RUN, "step", "env", "d", "axes", "block", "decoding", "task_seed"])


def load_experiment(folder: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read `folder`/train.csv and eval.csv, which must hold the same runs. Raises TableError."""
    train, evaluation = load_train(Path(folder) / "train.csv"), load_eval(Path(folder) / "eval.csv")
    here, there = (set(t[RUN].itertuples(index=False, name=None)) for t in (train, evaluation))
    if unpaired := sorted(here ^ there):
        has, lacks = ("train.csv", "eval.csv") if unpaired[0] in here else ("eval.csv", "train.csv")
        raise TableError(
            f"{folder}: {has} has the run {unpaired[0]} and {lacks} has not; gather the tables again"
        )
    return train, evaluation


class Runs(NamedTuple):
    """Tables of runs, as the plots take them."""

    train: pd.DataFrame
    evaluation: pd.DataFrame


def load_runs(*folders: str | Path) -> Runs:
    """Join the tables of experiments, and of single runs, to draw an arm beside others::

        runs = ecomlab.load_runs("experiments/quick", "experiments/runs/mine")
        plots.difficulty_growth(*runs)

    Raises TableError for tables that hold the same run, or were not evaluated at the same levels under the same axes.
    """
    tables = [load_experiment(_with_tables(Path(folder).expanduser())) for folder in folders]
    if not tables:
        raise TableError("name at least one folder with train.csv and eval.csv")
    seen: dict[Any, str | Path] = {}
    for folder, (train, _) in zip(folders, tables, strict=True):
        for run in sorted(set(train[RUN].itertuples(index=False, name=None))):
            if run in seen:
                raise TableError(
                    f"{seen[run]} and {folder} both hold the run {run}; leave one out, or give it another seed"
                )
            seen[run] = folder
    _check_alike([(folder, evaluation) for folder, (_, evaluation) in zip(folders, tables, strict=True)])
    return Runs(*(pd.concat(kind, ignore_index=True) for kind in zip(*tables, strict=True)))


def _with_tables(folder: Path) -> Path:
    if not (folder / "train.csv").is_file():
        inside = sorted(path.parent.name for path in folder.glob("*/train.csv"))
        holds = f"it holds {', '.join(inside)}: name those" if inside else "a run has train.csv and eval.csv"
        raise TableError(f"{folder} is no run and no sweep; {holds}")
    return folder


def _check_alike(evaluations: Sequence[tuple[str | Path, pd.DataFrame]]) -> None:
    """Check that folders which evaluated the same environment did so at the same levels, under the same axes."""
    known: dict[str, tuple[str | Path, str]] = {}
    for folder, table in evaluations:
        for env, mine in table.groupby("env"):
            axes = sorted(set(mine["axes"])) if "axes" in mine else []
            levels = ", ".join(map(str, sorted(set(mine.d))))
            now = f"d = {levels}" + (f" under {'; '.join(axes)}" if any(axes) else "")
            first, before = known.setdefault(str(env), (folder, now))
            if now != before:
                raise TableError(
                    f"{folder} was evaluated on {env} at {now}, {first} at {before}; train with the same "
                    "eval_difficulties and eval_axes, or draw them apart"
                )


def chosen(table: pd.DataFrame, where: str | Path, **values: object) -> pd.DataFrame:
    """Keep the rows with these values in these columns. Raises TableError, which names the file `where` and what there
    is instead, if none are left."""
    for column, value in values.items():
        there = sorted(set(table[column]))
        if value not in there:
            raise TableError(f"{where}: {unknown(column, value, map(str, there))}")
        table = table[table[column] == value]
    return table


def in_order(envs: Iterable[str]) -> list[str]:
    """Sort environments in the order of collection C8, others after them by name."""
    known = COLLECTIONS["C8"]
    return sorted(envs, key=lambda env: (known.index(env) if env in known else len(known), env))


@contextmanager
def _made_by(path: str | Path, what: str, command: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read into a TableError with the command that writes such a file."""
    try:
        yield
    except FileNotFoundError:
        raise TableError(f"no file {path}; {command} writes one") from None
    except (OSError, ValueError, KeyError, TypeError) as e:
        lacks = f"it lacks {e}" if isinstance(e, KeyError) else f"{type(e).__name__}: {e}"
        raise TableError(f"{path} is no {what} ({lacks}); {command} writes one") from e


@contextmanager
def _certificate(path: str | Path) -> Iterator[dict[str, Any]]:
    """Read a certificate's file, which must have all that figures of it record. Raises TableError."""
    with _made_by(path, "whole certificate", f"`ecomlab certify --json {path}`"):
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        for name in ("rows", "broken", "environments", "slip_rate", "fingerprint"):
            found[name]
        yield found


def load_certificate(path: str | Path) -> pd.DataFrame:
    """Read the certificate of `ecomlab certify --json`: a row per environment, level and player, in that order.

    Columns: env, d, player, share (of tasks that are correct), n (tasks; 0 for the stated chance, which is computed).
    "best blind" and "best positional" are the most successful attackers at that level; an environment without such
    attackers has no rows of them. Raises TableError.
    """
    rows = [(cell.env, cell.d, *row) for cell in _cells(path) for row in _players(cell)]
    return pd.DataFrame(rows, columns=["env", "d", "player", "share", "n"])


def _cells(path: str | Path) -> list["certificate.Row"]:
    """Read a certificate's rows, by environment and level. Raises TableError."""
    from ecomlab.laws import certificate

    with _certificate(path) as known:
        cells = [certificate.Row.from_json(row) for row in known["rows"]]
        if not cells:
            raise ValueError("it has no rows")
    order = in_order({cell.env for cell in cells})
    return sorted(cells, key=lambda cell: (order.index(cell.env), cell.d))


def _players(cell: "certificate.Row") -> Iterable[tuple[str, float, int]]:
    yield from (("oracle", cell.solver, cell.seeds), ("reference", cell.fair, cell.seeds))
    yield from (("perturbed", cell.noisy, cell.seeds), ("naive", cell.naive, cell.others))
    for kind, shares in (("blind", cell.blind), ("positional", cell.positional)):
        if shares:
            yield f"best {kind}", max(shares.values()), cell.others
    yield "chance", cell.chance, 0


def load_depth(path: str | Path) -> pd.DataFrame:
    """Read what players with and without steps of thought solve from the certificate of `ecomlab certify --json`: a row
    per environment, level and player, in that order.

    Columns: env, d, player, share (of tasks that are correct), n (tasks; of one "without" or "against" a kind those
    that hold it), steps (that count in a task, on average: of the kind, or of all). Raises TableError.
    """
    rows = [(cell.env, cell.d, *row) for cell in _cells(path) for row in _thinkers(cell)]
    return pd.DataFrame(rows, columns=["env", "d", "player", "share", "n", "steps"])


def _thinkers(cell: "certificate.Row") -> Iterable[tuple[str, float, int, float]]:
    for name in ("oracle", "reference", "courteous", "shortcut"):
        share = getattr(cell, {"oracle": "solver", "reference": "fair"}.get(name, name))
        if share == share:  # certificates of before there were steps lack some players
            yield name, share, cell.seeds, sum(cell.steps.values())
    for word, kinds in (("without", cell.lacking), ("against", cell.contrary)):
        for kind, (right, n) in kinds.items():
            yield f"{word} {kind}", right / n, n, cell.steps.get(kind, 0.0)


def load_axes_alone(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read tables axes_PLAYER.csv of `experiments/frontier/axes.py`: a row per player, axis and value that was changed.

    Columns: player, axis, value, tasks, success, difference (to the same tasks without the change), low, high. Raises
    TableError.
    """
    found = {}
    for path in map(Path, paths):
        with _made_by(path, "table of axes", "experiments/frontier/axes.py"):
            found[path] = pd.read_csv(path).assign(player=path.stem.removeprefix("axes_").replace("_", " "))
    table = pd.concat(found, ignore_index=True)
    return table[~table.axis.isin(["none", "room"])].reset_index(drop=True)


def load_understanding(path: str | Path) -> pd.DataFrame:
    """Read how well customers understood the banks of questions from the certificate of `ecomlab certify --json`: a row
    per bank and environment, and per bank and form of question.

    Columns: bank, env ("all" in rows of a form), form ("all" in rows of an environment and in the bank's own row),
    asks, exact (share), denied (number). Raises TableError.
    """
    with _certificate(path) as known:
        found = pd.DataFrame(known["understood"]).rename(columns={"group": "form"})
        if found.empty:
            raise ValueError("it has no questions")
        found["form"] = found.form.replace("of it", "all")
        return found[["bank", "env", "form", "asks", "exact", "denied"]]


def load_catalog_scale(path: str | Path) -> pd.DataFrame:
    """Read the table of ecomlab bench catalog, results.csv: a row per number of products and embedder, the
    smallest first. Raises TableError.
    """
    with _made_by(path, "table of catalogs by size", "ecomlab bench catalog"):
        return pd.read_csv(path).sort_values(["embedder", "products"]).reset_index(drop=True)


STUDY = (
    "runs", "success", "contrasts", "fresh", "health", "curves", "by_steps", "slopes", "company", "environments",
    "mended",
)  # fmt: skip
"""Tables of the registered study; experiments/frontier/analyse.py says what each holds."""


def load_study(folder: str | Path) -> dict[str, pd.DataFrame]:
    """Read the tables of a registered study by name, as experiments/frontier/analyse.py writes them. Raises
    TableError."""
    found = {}
    for name in STUDY:
        path = Path(folder) / f"{name}.csv"
        with _made_by(path, "table of the study", "python experiments/frontier/analyse.py"):
            found[name] = pd.read_csv(path)
    return found


def load_frontier(path: str | Path) -> pd.DataFrame:
    """Read what `ecomlab frontier --json` found: a row per environment and share of tasks that is asked for.

    Columns: env, player (an endpoint's is its model), share, level, low, high (95% interval); -1 stands for below 0.
    Raises TableError.
    """
    with _made_by(path, "frontier", f"`ecomlab frontier PLAYER --json {path}`"):
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        player = found["header"]["identity"].get("model") or found["header"]["player"]
        rows = [
            {"env": one["env"], "player": player, **row}
            for one in found["environments"]
            for row in one["held"]
        ]
        return pd.DataFrame(rows)[["env", "player", "share", "level", "low", "high"]]


def load_parts(path: str | Path) -> pd.DataFrame:
    """Read the table of experiments/quick/parts.py, sorted: means of the reward's parts over the held-out episodes of
    a run, step, environment, level and decoding. Raises TableError."""
    with _made_by(path, "table of the reward's parts", "python experiments/quick/parts.py"):
        return _sorted(pd.read_csv(path), [*RUN, "step", "env", "d", "decoding"])


def load_played(path: str | Path) -> pd.DataFrame:
    """Read the table of experiments/cascade/played.py: a row per mistake, and one of kind "none" per episode without
    any; episodes that were not scored are left out. Raises TableError."""
    with _made_by(path, "table of played mistakes", "python experiments/cascade/played.py PLAYER"):
        found = pd.read_csv(path, keep_default_na=False, na_values=dict.fromkeys(NUMBERS, ""))
        return found[found.kind != "unscored"].reset_index(drop=True)


NUMBERS = ("turns", "needed", "correct", "number", "turn", "until", "parent")
"""Columns of played.csv that may be empty."""


SHOWN = (
    "step", "env", "d", "success", "groups", "discarded", "truncated", "invalid", "entropy", "clip_share",
    "grad_norm", "logp_gap", "seconds",
)  # fmt: skip


def last_steps(train: pd.DataFrame, steps: int = 6) -> pd.DataFrame:
    """Select a run's last steps for display: a row per step, environment and level, newest first."""
    rows = train[train.step > train.step.max() - steps].sort_values("step", ascending=False, kind="stable")
    return rows[[name for name in SHOWN if name in rows]].round(3).set_index("step")


def _load(path: Path, model: type[Row], key: list[str]) -> pd.DataFrame:
    """Read a table of a sweep and check every row. The index holds the line numbers."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        made = f"ecomlab sweep {path.with_name('sweep.toml')}"
        raise TableError(f"no file {path}; a sweep writes it: {made}") from None
    except (OSError, UnicodeDecodeError) as e:
        raise TableError(f"{path} cannot be read: {e}") from e
    reader = csv.reader(text.splitlines())
    header = next(reader, [])
    for name, field in model.model_fields.items():
        if field.is_required() and name not in header:
            raise TableError(f"{path}, line 1: {unknown('column', name, header)}")
    rows, seen = dict[int, list[Any]](), dict[tuple[Any, ...], int]()
    for fields in filter(None, reader):
        where = f"{path}, line {reader.line_num}"
        if len(fields) != len(header):
            raise TableError(f"{where}: {len(fields)} fields where there are {len(header)} columns")
        try:
            row = model.model_validate(dict(zip(header, fields, strict=True)))
        except ValidationError as e:
            raise TableError("\n".join(f"{where}: {mistake}" for mistake in mistakes(e, model))) from None
        identity = tuple(getattr(row, name) for name in key)
        if identity in seen:
            raise TableError(f"{where}: the same {', '.join(key)} as line {seen[identity]}: {identity}")
        seen[identity] = reader.line_num
        rows[reader.line_num] = [getattr(row, name) for name in header]
    if not rows:
        raise TableError(f"{path} has no rows")
    table = pd.DataFrame.from_dict(rows, orient="index", columns=header)
    for name in set(header) - set(model.model_fields):  # a metric of the user's own
        with suppress(ValueError):
            table[name] = pd.to_numeric(table[name])
    return table


def _sorted(table: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    return table.sort_values(key, kind="stable").reset_index(drop=True)
