"""Episodes in a notebook: one with the state that each turn left behind, or two side by side."""

from collections.abc import Sequence

from ecomlab.catalog import Shop
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.transcript import Transcript
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
    *episodes: Transcript | Trajectory, shop: Shop, labels: Sequence[Sequence[Label] | None] = ()
) -> Watched:
    """Show one or two episodes, such as two players' of one task, turn by turn with cart, returns, what was stated and
    revealed, reward and mistakes. `labels` holds, for each episode, others than the mistakes that code finds.

    Raises TypeError for what is no episode, and ReplayError for a trajectory of another shop.
    """
    records = []
    for number, one in enumerate(episodes):
        named = labels[number] if number < len(labels) else None
        if isinstance(one, Transcript):
            records.append(record_of(one, shop, labels=named))
        elif isinstance(one, Trajectory):
            records.append(record_of_trajectory(one, shop, named))
        else:
            raise TypeError(f"watch shows transcripts and trajectories, not {one!r}")
    return Watched(records)
