"""Records of transcripts and trajectories, acted out again for what each turn left behind."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.customer.customer import Customer
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import ReplayError, replay
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.evaluation import trajectory_of
from ecomlab.evaluation.mistakes import PASSED, label
from ecomlab.evaluation.transcript import Transcript
from ecomlab.lab.truth import event_in_words, slot_in_words
from ecomlab.markup.record import Label, Record, State, number
from ecomlab.markup.results import cut
from ecomlab.reward import Score
from ecomlab.task import Event, SellOut, Slot

NOT_ACTED_OUT = "Without cart and reward by turn, for it cannot be acted out again"
"""Beginning of the note on an episode that today's environments would not repeat."""


def record_of(
    transcript: Transcript,
    shop: Shop | None = None,
    player: str = "",
    labels: Sequence[Label] | None = None,
) -> Record:
    """Record a transcript; with the shop that it was played in, each turn has the state that it left behind and the
    mistakes that were made in it (`labels_of`), unless other `labels` are given.

    Where it cannot be acted out again, because an environment has changed since, the record has its messages and says
    so.
    """
    job = transcript.job
    trial = f"trial {job.trial}" if job.trial else None
    step = None if transcript.step is None else f"step {transcript.step}"
    decoding = str(transcript.notes.get("decoding", ""))  # a training run's, which evaluates by two
    title = (f"{job.env} d = {job.d}", f"seed {job.seed}", trial, player, step, decoding)
    facts = {
        "axes": ", ".join(f"{name} = {value:g}" for name, value in job.axes.items()),
        "format errors": ", ".join(transcript.faults),
        "unscored": transcript.unscored,
        "group": str(transcript.notes.get("group", "")),
    }
    record = Record.of(
        " · ".join(filter(None, title)),
        transcript.messages,
        transcript.end,
        transcript.score,
        transcript.score.weights,
    )
    turns = transcript.notes.get("turns", {"tokens": (), "seconds": ()})
    spent = dict(enumerate(zip(turns["tokens"], turns["seconds"], strict=True), 1))
    steps = [
        replace(step, tokens=tokens, seconds=seconds)
        for step in record.steps
        for tokens, seconds in [spent.get(step.number, (0, 0.0))]
    ]
    record = replace(record, facts=facts, labels=tuple(labels or ()), steps=steps)
    if shop is None or not transcript.messages:
        return record
    try:
        trajectory = trajectory_of(transcript, shop)
        if labels is None and not transcript.unscored:
            record = replace(record, labels=labels_of(trajectory, shop))
        return _with_states(record, trajectory, shop)
    except (
        ReplayError,
        ValueError,
    ) as error:  # ValueError: an axis that is gone, a task that cannot be drawn
        return replace(record, note=f"{NOT_ACTED_OUT}: {cut(str(error), 300)}")


def record_of_trajectory(trajectory: Trajectory, shop: Shop, labels: Sequence[Label] | None = None) -> Record:
    """Record an episode that was just played, as `record_of` does. Raises ReplayError."""
    named = labels_of(trajectory, shop) if labels is None else labels
    return _with_states(replace(trajectory.record(), labels=tuple(named)), trajectory, shop)


def labels_of(trajectory: Trajectory, shop: Shop) -> tuple[Label, ...]:
    """Label the mistakes of a trajectory: what is wrong, why, and what became of it."""
    found = []
    for mistake in label(trajectory, shop).mistakes:
        why = [mistake.words, mistake.cause, "" if mistake.fate == PASSED else mistake.fate]
        found.append(Label(mistake.turn, mistake.kind, "; ".join(filter(None, why))))
    return tuple(found)


def _with_states(record: Record, trajectory: Trajectory, shop: Shop) -> Record:
    """Act the trajectory out again, and put beside each turn what it left behind."""
    states: list[State] = []
    replay(trajectory, shop, lambda episode: states.append(_state(episode)))
    final = trajectory.score  # an episode may be cut off after its last turn
    states[-1] = replace(states[-1], reward=number(final.value), parts=_weighted(final))
    return replace(record, steps=[replace(step, state=states[step.number]) for step in record.steps])


def _state(episode: Episode) -> State:
    """Take down how an episode stands."""
    customers = [subtask.customer for subtask in episode.subtasks[: episode.opened]]
    stated, revealed, withheld = (
        [_slot(slot, customer) for customer in customers for slot in getattr(customer.state, name)]
        for name in ("stated", "revealed", "untold")
    )
    score = episode.standing()
    return State(
        cart=cart_of(episode),
        returns=returns_of(episode),
        stated=stated,
        revealed=revealed,
        withheld=withheld,
        events=[_event(event, customer) for customer in customers for event in customer.fired],
        turns=episode.turn,
        turn_budget=episode.task.turns,
        calls=episode.world.calls,
        call_budget=episode.task.calls,
        reward=number(score.value),
        parts=_weighted(score),
    )


def _weighted(score: Score) -> dict[str, float]:
    return {name: value * score.weights.get(name, 1.0) for name, value in score.parts.items()}


def _slot(slot: Slot, customer: Customer) -> str:
    """Word a slot: "Webcam, price: $80". What is said of the whole goal, such as a budget, names no item."""
    called = customer.option_name(slot.item) if slot.name == "option" else None
    words = slot_in_words(slot.name, slot.value, customer.phrases, called or "")
    of_all = slot.name in customer.phrases.slots and len(customer.goal.items) > 1
    return words if of_all else _about(customer, slot.item, words)


def _event(event: Event, customer: Customer) -> str:
    words = event_in_words(event, customer.phrases)
    return words if isinstance(event, SellOut) else _about(customer, event.item, words)


def _about(customer: Customer, item: int, words: str) -> str:
    kind = customer.type_name(item)
    return f"{kind}, {words}" if kind else words


def cart_of(episode: Episode) -> list[dict[str, Any]]:
    """List the lines of the cart."""
    catalog, found = episode.world.catalog, []
    for (product_id, variant), units in episode.world.cart.items():
        product = catalog.record(episode.world.row(product_id))
        named = {"units": units, "product": product["title"], "variant": variant}
        found.append({**named, "each": f"${product['price']:.2f}", "id": product_id})
    return found


def returns_of(episode: Episode) -> list[dict[str, Any]]:
    """List the returns that were started."""
    world = episode.world
    bought = {
        (order["order_id"], line["line_id"]): line["product_id"]
        for order in world.given.get("orders", ())
        for line in order["lines"]
    }
    return [
        {
            "units": units,
            "product": world.catalog.title(world.row(bought[one])),
            "order": one[0],
            "line": one[1],
        }
        for one, units in world.returns.items()
    ]
