"""Measure our customers' lines beside those of two recorded corpora, for comparison only; README.md names the sources.

`python experiments/utterances/beside/compare.py TAU_BENCH ABCD`, two git clones: draws tau.jsonl and abcd.jsonl from
them and writes table.csv. Counts of distinct lines and words are means over draws of the size that the title gives.
"""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, quantiles

from rich.console import Console
from rich.table import Table

from ecomlab import ENVIRONMENTS, load_shop, make_task, play
from ecomlab.seeding import rng, shuffled

HERE = Path(__file__).parent
TAU = "59a200c6d575d595120f1cb70fea53cef0632f6b:few_shot_data/MockRetailDomainEnv-few_shot.jsonl"
ABCD = (  # three dialogues at each commit, no dialogue twice
    "6b8700ce67c6b37b062dd7a60abc76d7ef832a97:data/abcd_sample.json",
    "83875b9b5b240eb50de3355a2c00aa63f19b1a46:data/abcd_sample.json",
)
LINES, DRAWS, LEVELS = 200, 1000, (2, 4, 7, 9, 12)
COURTESY = re.compile(r"(hi|hello|hey|good (morning|afternoon|evening)|(many )?thanks|thank you)\b", re.I)
COLUMNS = "corpus lines words_q1 words_median words_q3 question courtesy lines_100 words_1000".split()


def shown(clone: str, file: str) -> str:
    """Read a file, named COMMIT:PATH, of a git clone."""
    return subprocess.run(["git", "-C", clone, "show", file], check=True, stdout=-1, encoding="utf-8").stdout


def tau(clone: str) -> Iterator[tuple[str, int, int]]:
    """Yield (text, dialogue, turn) of the simulated customers; the mark that ends a dialogue is no part of a line."""
    for dialogue, entry in enumerate(shown(clone, TAU).splitlines()):
        parts = re.split(r"^(user|assistant|tool): ", json.loads(entry)["messages_display"], flags=re.M)
        for turn, (role, said) in enumerate(zip(parts[1::2], parts[2::2], strict=True)):
            if role == "user" and (text := said.replace("###STOP###", "").strip()):
                yield text, dialogue, turn


def abcd(clone: str) -> Iterator[tuple[str, int, int]]:
    """Yield (text, dialogue, turn) of the human customers, in which nothing is masked."""
    for one in (one for file in ABCD for one in json.loads(shown(clone, file))):
        for turn, (role, text, *_) in enumerate(one.get("original") or one["raw"]):
            if role == "customer":
                yield text, one["convo_id"], turn


def ours() -> list[str]:
    """List the customers' lines in 40 episodes of courteous reference players."""
    shop = load_shop()
    tasks = [make_task(env, level, seed, shop) for env in ENVIRONMENTS for seed, level in enumerate(LEVELS)]
    players = [ENVIRONMENTS[task.env].reference_player(shop, courteous=True) for task in tasks]
    played = [play(player, task, shop) for player, task in zip(players, tasks, strict=True)]
    return [said["content"] for one in played for said in one.messages if said["role"] == "user"]


def words_of(*lines: str) -> list[str]:
    """List the words of lines in lower case."""
    return re.findall(r"\w+(?:[-'’.@]\w+)*", "\n".join(lines).lower())


corpora = {"ours": ours()}
for name, drawn in (("tau", tau(sys.argv[1])), ("abcd", abcd(sys.argv[2]))):
    some = shuffled(rng("beside", name), drawn)[:LINES]
    corpora[name] = [text for text, _, _ in some]
    lines = [json.dumps(dict(zip(("text", "dialogue", "turn"), one, strict=True))) for one in some]
    (HERE / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
size = min(100, *map(len, corpora.values()))
words = min(1000, *(len(words_of(*lines)) for lines in corpora.values()))
table = Table(*COLUMNS, title=f"distinct lines of {size}, distinct words of {words}")
with (HERE / "table.csv").open("w") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, lines in corpora.items():
        draws = [shuffled(rng("beside", i), lines) for i in range(DRAWS)]
        row = [len(lines), *quantiles([len(words_of(line)) for line in lines], n=4, method="inclusive")]
        row += [fmean("?" in line for line in lines), fmean(bool(COURTESY.match(line)) for line in lines)]
        row += [fmean(len(set(draw[:size])) for draw in draws) * 100 / size]
        row += [fmean(len(set(words_of(*draw)[:words])) for draw in draws) * 1000 / words]
        table.add_row(*(values := [name, *(f"{value:.3g}" for value in row)]))
        writer.writerow(values)
Console(width=120).print(table)
