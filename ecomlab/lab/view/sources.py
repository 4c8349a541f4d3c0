"""Which episodes the viewer shows: those of one folder of transcripts, or of several on the same tasks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.evaluation.evaluation import check_conditions
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import FILE, TranscriptError, path_of, read, read_header
from ecomlab.lab.shops import recorded_shop
from ecomlab.lab.view.acting import NOT_ACTED_OUT


@dataclass(frozen=True)
class Source:
    """Transcripts of one player."""

    path: Path
    """The file."""
    player: str
    """Name by which its episodes are told from the others'."""
    header: Mapping[str, Any]
    shop: Shop | None
    """The shop in which they are acted out again; None if they cannot be."""
    note: str = ""
    """Why not."""

    def read(self) -> Iterator[Transcript]:
        return read(self.path)


def sources_of(folders: Sequence[Path], plain: bool = False, catalog: str | None = None) -> list[Source]:
    """Open folders or files of transcripts, or folders of such folders, with the shops that they were played in unless
    `plain`. `catalog` is the folder where the recorded catalog is now, if it is another.

    Raises TranscriptError for what holds no transcripts, and for one run that is named twice.
    """
    paths = [path_of(run) for folder in folders for run in _runs_in(folder)]
    if len({path.resolve() for path in paths}) < len(paths):
        raise TranscriptError(f"{paths[0]} is named twice; name it once, or another run beside it")
    headers = [read_header(path) for path in paths]
    names = [str(header.get("player", path.parent.name)) for header, path in zip(headers, paths, strict=True)]
    if len(set(names)) < len(names):  # two runs of one player: their folders tell them apart
        names = [str(path.parent) for path in paths]
    return [
        Source(path, name, header, *((None, "") if plain else _shop_of(header, catalog)))
        for path, name, header in zip(paths, names, headers, strict=True)
    ]


def _runs_in(folder: Path) -> list[Path]:
    """List a run, or the runs in a folder that is none itself."""
    if not folder.is_dir() or (folder / FILE).exists():
        return [folder]
    return sorted(file.parent for file in folder.glob(f"*/{FILE}")) or [folder]


def _shop_of(header: Mapping[str, Any], now: str | None) -> tuple[Shop | None, str]:
    """Load the shop that a header names; None, and why, where today's would play another episode."""
    try:
        shop = recorded_shop(header["conditions"]["catalog"], now)
        check_conditions(header, shop)
    except KeyError as error:
        return None, f"{NOT_ACTED_OUT}: the header lacks {error}"
    except (TypeError, ValueError) as error:  # TranscriptError: something has changed since
        return None, f"{NOT_ACTED_OUT}: {error}"
    return shop, ""


@dataclass(frozen=True)
class Selection:
    """Which episodes of each source are shown, by their places in it."""

    places: Sequence[frozenset[int]]
    of: int
    """Number of all episodes."""
    together: bool
    """True if the sources have a task in common."""

    def __len__(self) -> int:
        return sum(map(len, self.places))


def select(sources: Sequence[Source], limit: int) -> Selection:
    """Choose the first episodes of each source, as many of one as of another and at most `limit` in all.

    Of further sources those on tasks of earlier ones come before others, so that they can be read side by side. Raises
    TranscriptError for a source without an episode.
    """
    tasks: set[tuple[Any, ...]] = set()
    places, named = [], [[_task_of(transcript) for transcript in source.read()] for source in sources]
    for source, theirs in zip(sources, named, strict=True):
        if not theirs:
            raise TranscriptError(
                f"{source.path} holds no episode yet; wait for the first, or name another folder"
            )
        order = sorted(range(len(theirs)), key=lambda place: theirs[place] not in tasks)
        chosen = frozenset(order[: limit // len(sources)])
        tasks |= {theirs[place] for place in chosen}
        places.append(chosen)
    return Selection(places, sum(map(len, named)), bool(set.intersection(*map(set, named))))


def episodes_of(sources: Sequence[Source], selection: Selection) -> Iterator[tuple[Source, Transcript]]:
    """Read the episodes that are shown, in the order in which they were played."""
    for source, chosen in zip(sources, selection.places, strict=True):
        for place, transcript in enumerate(source.read()):
            if place in chosen:
                yield source, transcript


def _task_of(transcript: Transcript) -> tuple[Any, ...]:
    job = transcript.job
    return job.env, job.d, job.seed, *sorted(job.axes.items())
