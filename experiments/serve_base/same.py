"""Are the episodes of two evaluations the same? *base* by the real `transformers serve`, and as weights here, greedily.

    python experiments/serve_base/serve.py base --export FOLDER
    transformers serve FOLDER --port 8124 --device cpu --dtype float32
    python experiments/serve_base/serve.py base --backend http://127.0.0.1:8124
    ecomlab eval experiments/serve_base/greedy.toml --env C8 --difficulty 0 --episodes 96 --out SERVED
    ecomlab eval base --decoding greedy --env C8 --difficulty 0 --episodes 96 --out HERE
    python experiments/serve_base/same.py SERVED HERE --out experiments/serve_base/same.json

`ecomlab compare` refuses the two, for the first has no limit of tokens for a whole episode.
"""

import argparse
import json
from pathlib import Path

from check import said

from ecomlab.evaluation.transcripts import read
from ecomlab.files import write_json


def main() -> None:
    """Compare episode by episode, and write down how many are the same."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs=2, help="folders of transcripts")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    first, second = ({one.key: one for one in read(folder)} for folder in chosen.folders)
    if first.keys() != second.keys():
        parser.error(f"{len(first.keys() ^ second.keys())} episodes are in one of the two alone")
    differ = [key for key in first if said(first[key]) != said(second[key])]
    found = {
        "episodes": len(first),
        "same score": sum(first[key].score.value == second[key].score.value for key in first),
        "same messages": len(first) - len(differ),
        "other messages, and invalid in both": sum(
            first[key].end == second[key].end == "invalid" for key in differ
        ),
    }
    print(json.dumps(found, indent=1))
    if chosen.out:
        write_json(chosen.out, found)


if __name__ == "__main__":
    main()
