"""Episodes in a notebook: one with the state that each turn left behind, or two side by side."""

from collections.abc import Sequence
from pathlib import Path

from ecomlab.catalog import Shop, load_shop
from ecomlab.catalog.shop import loaded_shops
from ecomlab.episode.episode import make_task
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.report import Report
from ecomlab.evaluation.transcript import Transcript
from ecomlab.lab.shops import recorded_shop
from ecomlab.lab.view.acting import record_of, record_of_trajectory
from ecomlab.markup.conversation import episode
from ecomlab.markup.elements import element, in_notebook
from ecomlab.markup.record import Label, Record


class Watched:
    """Records as a notebook shows them, side by side where there is room."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records

    def __repr__(self) -> str:
        return "\n".join(f"{record.title}: reward {record.reward}, {record.why}" for record in self.records)

    def _repr_html_(self) -> str:
        return in_notebook(element("div", *map(episode, self.records), class_="beside"))


def watch(
    *episodes: Transcript | Trajectory | str | Path,
    shop: Shop | None = None,
    labels: Sequence[Sequence[Label] | None] = (),
) -> Watched:
    """Show one or two episodes, such as two players' of one task, turn by turn with cart, returns, stated and revealed
    wishes, reward and mistakes.

    A path names a saved evaluation, of which the first failure is shown, or the first episode. `shop` is that of the
    episodes; by default the one that is loaded or recorded. `labels` holds, for each episode, others than the mistakes
    that code finds. Raises TypeError for anything else, and ReplayError for a trajectory of another shop.
    """
    records = []
    for number, one in enumerate(episodes):
        named = labels[number] if number < len(labels) else None
        mine = shop
        if isinstance(one, str | Path):
            report = Report.read(one)
            mine = mine or recorded_shop(report.header["conditions"]["catalog"])
            one = [*report.failures, *report.transcripts][0]
        if isinstance(one, Transcript):
            records.append(record_of(one, mine or _shop_of(one), labels=named))
        elif isinstance(one, Trajectory):
            records.append(record_of_trajectory(one, mine or _loaded(one.task.fingerprint), named))
        else:
            raise TypeError(f"watch shows transcripts, trajectories and saved evaluations, not {one!r}")
    return Watched(records)


def _loaded(fingerprint: str) -> Shop:
    """Find a shop of this process; the usual one where there is none of that fingerprint."""
    return next((shop for _, shop in loaded_shops() if shop.fingerprint == fingerprint), None) or load_shop()


def _shop_of(transcript: Transcript) -> Shop | None:
    """Find the shop of this process in which a transcript was played; None if no shop draws its task."""
    job = transcript.job
    for _, shop in loaded_shops():
        try:
            if make_task(job.env, job.d, job.seed, shop, job.axes).digest() == transcript.task:
                return shop
        except ValueError:  # another catalog may not carry the environment
            continue
    return None
