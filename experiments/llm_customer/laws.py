"""Judges the laws with an endpoint as the customer's words, by the code that judges them in `ecomlab certify`: those
that a hostile endpoint could break with hostile ones, and whether a customer is understood and can be talked through
with honest ones. The endpoints are scripted, and called in this process (`wordings.py`).

    python experiments/llm_customer/laws.py   # all environments at d = 0, 6 and 12; goes on where it was stopped

Each cell is kept as soon as it is played, for the same code, shop and counts. `laws.json` has what was measured, each
law's state by environment as a certificate gives it, and the table of docs/llm_customer.md.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

from labels import Labeller
from wordings import HOSTILE, STYLES, Honest, is_label

import ecomlab
from ecomlab import ENVIRONMENTS, Shop
from ecomlab.customer.llm import Chat
from ecomlab.evaluation.evaluation import environment_of
from ecomlab.files import write_json
from ecomlab.laws import counterfactual, laws, understanding
from ecomlab.laws.certificate import FIRST_SEED, Row, certify_cell
from ecomlab.laws.counterfactual import Comparison
from ecomlab.laws.laws import Evidence, State
from ecomlab.laws.tool_introspection import drawn, reference_player
from ecomlab.laws.understanding import Share
from ecomlab.seeding import digest, package_digest
from ecomlab.task import Message
from ecomlab.world.state import World

HERE = Path(__file__).parent
SIZE, LEVELS = 20_000, (0, 6, 12)
"""The certificate's catalog, and the levels that are judged."""
SEEDS, OTHERS = 230, 50
"""Tasks of a cell for oracle and reference players, and for every attacker: what a faultless sample needs for 97% in a
cell, for 99% in three, and for an attacker's 5% in three (`laws.enough`)."""
BANK = "tenth"
"""Bank of questions whose labels a strong model has given (`labels.py`)."""
LAWS = {
    "hostile": ("SOLVABLE", "FAIR", "NOT GAMEABLE", "SILENT", "BROKEN IS NOT WRONG"),
    "honest": ("FAIR", "TALKED THROUGH", "UNDERSTOOD"),
}
"""The laws that are judged, by the endpoint. HARDER, BY EFFECT, ONE RECORD, REPRODUCIBLE and ISOLATED do not hang on
what a customer's words are."""


def hostile(seed: int) -> Chat:
    """Make the hostile endpoint of a task: all of them in turn."""
    return HOSTILE[list(HOSTILE)[seed % len(HOSTILE)]]


def honest(seed: int) -> Chat:
    """Make the honest endpoint of a task: all styles in turn."""
    return Honest(list(STYLES)[seed % len(STYLES)], seed)


class Labelling(Labeller):
    """Rewords as `Honest` does, and labels as the file says."""

    def __call__(self, messages: list[Message]) -> str:
        return super().__call__(messages) if is_label(messages) else honest(0)(messages)


def main() -> None:
    """Play what is missing, then judge and write."""
    chosen = _arguments()
    measured = measure(chosen.env, chosen.levels, chosen.seeds, chosen.others, chosen.size, chosen.out)
    write_json(chosen.out, {**measured, "states": states(measured)})
    for law, customer, env, state in _listed(states(measured)):
        print(f"{law:20} {customer:8} {env:8} {state}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", nargs="+", default=list(ENVIRONMENTS), choices=list(ENVIRONMENTS))
    parser.add_argument("--levels", type=int, nargs="+", default=list(LEVELS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--others", type=int, default=OTHERS)
    parser.add_argument("--size", type=int, default=SIZE, help="products of the generated shop")
    parser.add_argument("--out", type=Path, default=HERE / "laws.json")
    return parser.parse_args()


def measure(
    envs: Sequence[str], levels: Sequence[int], seeds: int, others: int, size: int, out: Path
) -> dict[str, Any]:
    """Measure every cell that is not kept beside `out`."""
    shop = ecomlab.load_shop(size)
    parts: dict[str, Callable[[str, int], Any]] = {
        "hostile rows": lambda env, d: certify_cell(env, d, seeds, others, shop, hostile).to_json(),
        "hostile comparisons": lambda env, d: asdict(
            counterfactual.compare(env, d, range(FIRST_SEED, FIRST_SEED + seeds), shop, hostile)
        ),
        "hostile scores": lambda env, d: _scores(env, d, seeds, shop),
        "honest rows": lambda env, d: certify_cell(env, d, seeds, 0, shop, honest).to_json(),
    }
    kept, made = out.with_suffix(".kept.jsonl"), dict[str, Any]()
    code = package_digest()
    done = _kept(kept)
    for part, play in parts.items():
        made[part] = []
        for env, d in ((env, d) for d in levels for env in envs):
            key = digest([part, env, d, seeds, others, shop.fingerprint, code])
            if key not in done:
                done[key] = play(env, d)
                _keep(kept, key, f"{part} {env} {d}", done[key])
            made[part].append(done[key])
    key = digest([BANK, shop.fingerprint, code])
    if key not in done:
        answers = json.loads((HERE / f"{BANK}.labels.json").read_text("utf-8"))
        found = understanding.measure(shop, banks=[BANK], chat=Labelling(answers))
        done[key] = [asdict(share) for share in found]
        _keep(kept, key, f"honest questions {BANK}", done[key])
    made["honest questions"] = done[key]
    return {
        "environments": {env: environment_of(env) for env in envs},
        "fingerprint": shop.fingerprint,
        "levels": list(levels),
        "endpoints": {"hostile": list(HOSTILE), "honest": list(STYLES), "labels": f"{BANK}.labels.json"},
        **made,
    }


def _scores(env: str, d: int, seeds: int, shop: Shop) -> dict[str, Any]:
    """Count for BROKEN IS NOT WRONG: the reference player's scores that are the templates', and how many failures of
    ours, a player and a tool that break, have no score."""
    tasks, _ = drawn(env, d, range(FIRST_SEED, FIRST_SEED + seeds), shop)
    same = unscored = ours = 0
    for task in tasks:
        chat, expected = hostile(task.seed), ecomlab.play(reference_player(env, shop), task, shop)
        found = ecomlab.play(reference_player(env, shop), task, shop, customer=chat)
        same += (found.score, found.end) == (expected.score, expected.end)
        unscored += found.score.unscored
        ours += ecomlab.play(_breaking, task, shop, customer=chat).score.unscored
        with patch.object(World, "spend_call", side_effect=ZeroDivisionError):
            ours += ecomlab.play(reference_player(env, shop), task, shop, customer=chat).score.unscored
    return {"env": env, "d": d, "tasks": len(tasks), "same": same, "unscored": unscored, "failures": ours}


def _breaking(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
    """Ask once, so that the endpoint has words to reword, and break."""
    if messages[-2]["role"] != "system":
        raise TimeoutError("the player is down")
    return {"role": "assistant", "content": "Is there anything else I should know?"}


def states(measured: Mapping[str, Any]) -> dict[str, dict[str, dict[str, State]]]:
    """Judge: {endpoint: {law: {environment: state}}}, by `laws.states` where a certificate judges the law."""
    found = {
        "hostile": laws.states(
            Evidence(
                [Row.from_json(row) for row in measured["hostile rows"]],
                comparisons=[Comparison(**one) for one in measured["hostile comparisons"]],
            )
        ),
        "honest": laws.states(
            Evidence(
                [Row.from_json(row) for row in measured["honest rows"]],
                understood=[Share(**share) for share in measured["honest questions"]],
            )
        ),
    }
    found["hostile"]["BROKEN IS NOT WRONG"] = {
        env: _unbroken([one for one in measured["hostile scores"] if one["env"] == env])
        for env in measured["environments"]
    }
    return {
        customer: {law: found[customer].get(law, {}) for law in named} for customer, named in LAWS.items()
    }


def _unbroken(cells: Sequence[Mapping[str, Any]]) -> State:
    """Judge BROKEN IS NOT WRONG as SOLVABLE is judged: all scores must be the templates', and no failure has one."""
    tasks = sum(one["tasks"] for one in cells)
    right = all((one["same"], one["failures"]) == (one["tasks"], 2 * one["tasks"]) for one in cells)
    return laws.at_least(1.0, tasks, laws.FAIR) if right else State.BROKEN


def _listed(found: Mapping[str, Mapping[str, Mapping[str, State]]]) -> Iterator[tuple[str, str, str, State]]:
    for customer, by_law in found.items():
        for law, by_env in by_law.items():
            yield from ((law, customer, env, state) for env, state in by_env.items())


def _kept(path: Path) -> dict[str, Any]:
    """Read the kept cells by key; the cell of a line that a kill cut off is played again."""
    found = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
            found[record["key"]] = record["found"]
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _keep(path: Path, key: str, what: str, found: Any) -> None:
    print(what, flush=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps({"key": key, "what": what, "found": found}))


if __name__ == "__main__":
    main()
