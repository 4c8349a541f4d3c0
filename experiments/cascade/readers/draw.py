"""The sixty trajectories for two readers: `places.py` says which, here they are played and kept.

    python experiments/cascade/readers/draw.py            # play what is missing, take over finished seats
    python experiments/cascade/readers/draw.py --seats    # print how each seat that is missing is begun

Scripts and weights play here. The places of the language model are played by `seat.py` and are taken over once they are
over. transcripts.jsonl is a file as evaluations write it: `ecomlab eval --rescore` replays it.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from places import MODEL, SEATS, SIZE, TRANSCRIPTS, Place, places
from seat import Seat

from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.play import record
from ecomlab.evaluation.evaluation import header_of
from ecomlab.evaluation.faults import faults_of
from ecomlab.evaluation.players import contestant_of
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import read, write
from ecomlab.files import replacing
from ecomlab.lab.provenance import commit, versions


@dataclass(frozen=True)
class Several:
    """Whoever plays, as the header of the transcripts names them."""

    identity: Mapping[str, Any]


def played(place: Place, shop: Shop) -> Transcript | None:
    """Play a place; of the model's, take over what was played from its seat, None where that is not over."""
    if place.player != MODEL:
        contestant = contestant_of(place.player, shop, [place.job.env])
        return next(iter(contestant.play([place.job], shop)))
    if not (SEATS / f"{place.name}.json").exists():
        return None
    seat = Seat.read(place.name)
    if (seat.env, seat.d, seat.seed) != (place.job.env, place.job.d, place.job.seed):
        raise SystemExit(f"seat {place.name} is another task's; delete it and begin it anew as --seats says")
    episode = seat.episode(shop)
    if not episode.done:
        return None
    trajectory = record(episode)
    return Transcript.of(place.job, trajectory, faults=faults_of(trajectory))


def kept() -> dict[int, Transcript]:
    """Read what is played already, by number of the place."""
    return {t.notes["place"]: t for t in read(TRANSCRIPTS)} if TRANSCRIPTS.exists() else {}


def transcripts(there: Mapping[int, Transcript], shop: Shop) -> Iterator[Transcript]:
    """Yield what is played, in the order of the places; what is there is not played again."""
    for place in places():
        found = there.get(place.number)
        if found is None and (made := played(place, shop)) is not None:
            notes = {"place": place.number, "player": place.player}
            found = replace(made, notes={**made.notes, **notes})
            print(f"{place.name}: {place.player}, {place.job.env}, d = {place.job.d}", flush=True)
        if found is not None:
            yield found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seats", action="store_true")
    asked = parser.parse_args()
    if asked.seats:
        for place in places():
            if place.player == MODEL and not (SEATS / f"{place.name}.json").exists():
                job = place.job
                print(
                    f"python experiments/cascade/readers/seat.py new {place.name} {job.env} {job.d} {job.seed}"
                )
        return
    shop = load_shop(SIZE)
    players = sorted({place.player for place in places()})
    header = header_of(
        "drawn for two readers", ", ".join(players), Several({"kind": "several", "models": players}),
        list(ENVIRONMENTS), {}, shop, {"size": SIZE, "seed": 0},
        made_with={"commit": commit(), "libraries": versions()},
    )  # fmt: skip
    there = kept()
    found = list(transcripts(there, shop))
    if len(found) > len(there):
        with replacing(TRANSCRIPTS) as draft:
            write(draft, header, found)
    print(f"{len(found)} of {len(places())} are played")


if __name__ == "__main__":
    main()
