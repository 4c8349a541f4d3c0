"""The certificate in the terminal, with its broken laws."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.files import write_json
from ecomlab.laws import certificate, laws, understanding
from ecomlab.laws.certificate import Row
from ecomlab.laws.counterfactual import Comparison
from ecomlab.laws.leaks import Leak
from ecomlab.laws.understanding import Share


def certify(
    envs: Sequence[str],
    levels: Sequence[int],
    seeds: int,
    others: int,
    leaks: int,
    console: Console,
    *,
    workers: int | None = None,
    json_file: Path | None = None,
    ask: int = 2,
    catalog: str | int = 20_000,
    on_progress: Callable[[str, float | None], None] = lambda text, share: None,
) -> list[str]:
    """Measure, show the tables, write `json_file` if given; return the broken laws. `leaks` is in tasks per level,
    `ask` in customers that each question of the banks is asked of, on the first turn and later; `catalog` is a folder
    or a number of generated products; `on_progress` is called with a text and, if known, the share done."""
    shop = load_shop(catalog)
    rows: list[Row] = []
    cells, kept = len(envs) * len(levels), json_file.with_suffix(".kept.jsonl") if json_file else None
    on_progress("certifying", 0.0)
    for row in certificate.certify(envs, levels, seeds, others, catalog, workers, kept):
        rows.append(row)
        on_progress(f"{len(rows)}/{cells} cells certified", len(rows) / cells)
    on_progress("looking for leaks", None)
    found, compared = certificate.find_leaks(envs, leaks, workers, catalog, kept) if leaks else ([], [])
    on_progress("asking the bank of questions", None)
    asked = understanding.measure(shop, ask) if ask else []
    rows.sort(key=lambda row: (envs.index(row.env), row.d))
    broken = laws.broken_laws(rows, found, compared, asked)
    console.print(table_of_rows(rows))
    if found:
        console.print(table_of_leaks(found))
    if asked:
        console.print(table_of_questions(asked))
    for row in rows:
        for miss in row.misses:
            console.print(escape(f"{row.env} d = {row.d}: {miss}"))
        for why, tasks in row.refused.items():
            console.print(escape(f"{row.env} d = {row.d}: {tasks} tasks refused: {why}"))
    if json_file is not None:
        write(json_file, rows, shop, found, compared, asked)
        console.print(f"written to {json_file}")
    for line in broken:
        console.print(f"[red]broken[/red]  {escape(line)}")
    for law, states in laws.states(laws.Evidence(rows, found, compared, asked)).items():
        if unsure := [env_id for env_id, state in states.items() if state is laws.State.NOT_SHOWN]:
            console.print(f"not shown  {law}: too few tasks of {', '.join(unsure)}")
    console.print(f"{len(broken)} broken" if broken else "No law is broken.")
    return broken


def table_of_rows(rows: Sequence[Row]) -> Table:
    """Tabulate a certificate, with the best blind and the best positional attacker of each row."""
    table = Table(box=None, pad_edge=False)
    for heading in "env d oracle reference courteous perturbed naive blind posit. chance turns".split():
        table.add_column(heading, no_wrap=True, justify="left" if heading == "env" else "right")
    for row in rows:
        best = [max(group.values(), default=0.0) for group in (row.blind, row.positional)]
        shares = (row.solver, row.fair, row.courteous, row.noisy, row.naive, *best, row.chance)
        if row.seeds:
            table.add_row(row.env, str(row.d), *(f"{share:.3f}" for share in shares), f"{row.turns:.1f}")
        else:
            table.add_row(row.env, str(row.d), "refused")
    return table


def table_of_leaks(leaks: Sequence[Leak]) -> Table:
    """Tabulate the classifier's success in finding what is wanted, by tool and field."""
    table = Table("env", "tool: field", "lists", "AUC", "99%")
    for leak in leaks:
        interval = f"{leak.low:.3f} to {leak.high:.3f}"
        table.add_row(leak.env, leak.kind, str(leak.lists), f"{leak.auc:.3f}", interval)
    return table


def table_of_questions(asked: Sequence[Share]) -> Table:
    """Tabulate how many questions of the banks are answered exactly."""
    table = Table("bank", "environment", "questions", "asks", "exact", "denied")
    for share in asked:
        table.add_row(
            share.bank, share.env, share.group, str(share.asks), f"{share.exact:.3f}", str(share.denied)
        )
    return table


def write(
    path: Path,
    rows: Sequence[Row],
    shop: Shop,
    leaks: Sequence[Leak] = (),
    comparisons: Sequence[Comparison] = (),
    asked: Sequence[Share] = (),
) -> None:
    """Write the certificate as JSON: measurements, their conditions, and the states of the laws."""
    environments = {row.env: ENVIRONMENTS[row.env].version for row in rows}
    document = {
        "rows": [row.to_json() for row in rows],
        "leaks": [asdict(leak) for leak in leaks],
        "comparisons": [asdict(comparison) for comparison in comparisons],
        "understood": [asdict(share) for share in asked],
        "broken": laws.broken_laws(rows, leaks, comparisons, asked),
        "laws": laws.states(laws.Evidence(rows, leaks, comparisons, asked)),
        "environments": environments,
        "fingerprint": shop.fingerprint,
        "slip_rate": certificate.SLIP_RATE,
    }
    write_json(path, document)
