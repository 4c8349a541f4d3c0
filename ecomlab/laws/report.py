"""The certificate in the terminal, with its broken laws."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.files import write_json
from ecomlab.laws import certificate, laws, truthful, understanding
from ecomlab.laws.certificate import Row
from ecomlab.laws.laws import Evidence


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
    truths: int = truthful.WRONG,
    talks: int = 1_250,
    catalog: str | int = 20_000,
    on_progress: Callable[[str, float | None], None] = lambda text, share: None,
) -> list[str]:
    """Measure, show the tables, write `json_file` if given; return the broken laws.

    `leaks` is in tasks per level; `ask` in customers that each question of the banks is asked of, on the first turn and
    later (without any, messages are not read either); `truths` in messages with wrong elements that are made of a
    frame; `talks` in talkative episodes per environment. `catalog` is a folder or a number of generated products;
    `on_progress` is called with a text and, if known, the share done.
    """
    shop = load_shop(catalog)
    rows: list[Row] = []
    cells, kept = len(envs) * len(levels), json_file.with_suffix(".kept.jsonl") if json_file else None
    on_progress("certifying", 0.0)
    for row in certificate.certify(envs, levels, seeds, others, catalog, workers, kept):
        rows.append(row)
        on_progress(f"{len(rows)}/{cells} cells certified", len(rows) / cells)
    on_progress("looking for leaks", None)
    found, compared = certificate.find_leaks(envs, leaks, workers, catalog, kept) if leaks else ([], [])
    on_progress("asking the banks of questions", None)
    asked = understanding.measure(shop, ask) if ask else []
    on_progress("reading the bank of messages", None)
    heard = understanding.heard(shop) if ask else []
    on_progress("telling what is true and what is not", None)
    told = truthful.measure(shop, truths) if truths else []
    on_progress("looking for contradictions", None)
    talked = certificate.find_contradictions(envs, talks, workers, catalog, kept) if talks else []
    rows.sort(key=lambda row: (envs.index(row.env), row.d))
    evidence = Evidence(rows, found, compared, asked, heard, told, talked)
    broken = laws.broken_laws(evidence)
    for table in tables_of(evidence):
        console.print(table)
    for row in rows:
        for miss in row.misses:
            console.print(escape(f"{row.env} d = {row.d}: {miss}"))
        for why, tasks in row.refused.items():
            console.print(escape(f"{row.env} d = {row.d}: {tasks} tasks refused: {why}"))
    for example in (example for one in talked for example in one.examples):
        console.print(escape(example))
    if json_file is not None:
        write(json_file, evidence, shop)
        console.print(f"written to {json_file}")
    for line in broken:
        console.print(f"[red]broken[/red]  {escape(line)}")
    for law, states in laws.states(evidence).items():
        if unsure := [env_id for env_id, state in states.items() if state is laws.State.NOT_SHOWN]:
            console.print(f"not shown  {law}: too few tasks of {', '.join(unsure)}")
    console.print(f"{len(broken)} broken" if broken else "No law is broken.")
    return broken


def tables_of(evidence: Evidence) -> Iterator[Table]:
    """Tabulate what was measured: players and attackers, traps and contrarians, the classifier's success by tool and
    field, messages that are understood exactly, truths, and talkative episodes."""
    yield table_of_rows(evidence.rows)
    if any(row.outcomes for row in evidence.rows):
        yield table_of_traps(evidence.rows)
    if evidence.leaks:
        yield _table(
            ("env", "tool: field", "lists", "AUC", "99%"),
            (
                (x.env, x.kind, x.lists, f"{x.auc:.3f}", f"{x.low:.3f} to {x.high:.3f}")
                for x in evidence.leaks
            ),
        )
    for what, shares in (("questions", evidence.understood), ("messages", evidence.heard)):
        if shares:
            yield _table(
                ("bank", "environment", what, "number", "exact", "denied"),
                ((x.bank, x.env, x.group, x.asks, f"{x.exact:.3f}", x.denied) for x in shares),
            )
    for bank in dict.fromkeys(one.bank for one in evidence.truths):
        mine = [one for one in evidence.truths if one.bank == bank and ":" not in one.group]
        yield truthful.table_of(mine)
    if evidence.talked:
        yield _table(
            ("env", "episodes", "with a contradiction", "sentences that fit no form"),
            ((x.env, x.episodes, x.contradicting, x.unread) for x in evidence.talked),
        )


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    table = Table(*headings)
    for row in rows:
        table.add_row(*map(str, row))
    return table


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


def table_of_traps(rows: Sequence[Row]) -> Table:
    """Tabulate what traps come to, and what a contrarian solves of the tasks that hold one, over all levels."""
    table = Table("env", "trap", "is so", "of", "contrarian solves", "of tasks")
    for env in dict.fromkeys(row.env for row in rows):
        mine = [row for row in rows if row.env == env]
        solved = laws.sums(row.contrary for row in mine)
        for name, (so, traps) in sorted(laws.sums(row.outcomes for row in mine).items()):
            right, tasks = solved.get(name.partition(":")[0], ("", ""))
            table.add_row(env, name, f"{so / traps:.2f}", str(traps), str(right), str(tasks))
    return table


def write(path: Path, evidence: Evidence, shop: Shop) -> None:
    """Write the certificate as JSON: measurements, their conditions, and the states of the laws."""
    write_json(
        path,
        {
            "rows": [row.to_json() for row in evidence.rows],
            **{
                name: [asdict(one) for one in some] for name, some in vars(evidence).items() if name != "rows"
            },
            "broken": laws.broken_laws(evidence),
            "laws": laws.states(evidence),
            "environments": {row.env: ENVIRONMENTS[row.env].version for row in evidence.rows},
            "fingerprint": shop.fingerprint,
            "slip_rate": certificate.SLIP_RATE,
        },
    )
