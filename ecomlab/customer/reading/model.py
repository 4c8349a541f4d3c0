"""The linear model that reads messages: what each does and asks for, by integer weights that `make reader` fits.

Three layers, each a sum of weights. A sentence's n-grams score its acts, slots by their kind, and whether its values
are claims; the scores of all sentences, binned, decide which acts the message holds; n-grams around a slot's own
words, the same weights for every slot, add to that slot's score, and words around a value to its being a claim. A slot
of a user's own needs no weights: its words and values are marked like others'.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from ecomlab.customer.reading.features import Seen, of_mention, of_slot, whole
from ecomlab.customer.reading.words import WEIGHTS

SCALE = 100
"""Integer units of a weight."""
ACTS = (
    "SET", "CHECK", "CHOICE", "OPEN", "WHY", "TELL", "NOTED", "BAD", "REFUSE", "OFFER", "LIST", "SUMMARY",
    "CONSENT", "REPEAT", "UNDERSTOOD", "IDENTITY", "GREET", "THANK", "APOLOGISE", "SYMPATHISE", "CLOSE", "OFFTOPIC",
    "LANGUAGE", "STRAY", "NONSENSE",
)  # fmt: skip
"""Acts of a sentence. SET asks for a value, CHECK whether one is so, CHOICE which of some it is; TELL is whatever tells
something (STATE, ANSWER, ANNOUNCE, PROMISE, INSTRUCT, HANDOVER, WAIT, SELFCORRECT in the banks), NOTED a part of it:
what takes up the customer's wishes or case."""
QUESTIONS = ("SET", "CHECK", "CHOICE")
"""Acts that ask for a value."""
GROUPS = {
    "ask": (*QUESTIONS, "LIST"),
    "judge": ("SUMMARY", "CONSENT", "OFFER", "UNDERSTOOD"),
    "open": ("OPEN",),
    "why": ("WHY",),
    "repeat": ("REPEAT",),
    "identity": ("IDENTITY",),
    "back": ("LANGUAGE", "STRAY", "NONSENSE"),
}
"""What a message may call for, and the acts that do."""
BINS = np.array([-110, -80, -50, -25, 0, 25, 60])
NEAR = -30
"""A sentence's score from which on it may hold an act that its message holds."""


def kind_of(slot: str) -> str:
    """Return the kind of a slot, by which it has weights of its own: all attributes are of one."""
    return slot.partition(":")[0]


@dataclass(frozen=True)
class Model:
    """The weights. `grams` numbers the n-grams of sentences, `sentence` has a row for each and a column for each act
    and kind of slot, and one for claims; `near` are weights of n-grams around a slot's words, `mention` of words around
    a value; `bins` and `message` the second layer's."""

    kinds: tuple[str, ...]
    grams: dict[str, int]
    sentence: np.ndarray
    near: dict[str, int]
    mention: dict[str, int]
    bins: dict[str, int]
    message: np.ndarray
    """Columns: the groups, then the acts; its last row is the bias."""

    @cached_property
    def levels(self) -> np.ndarray:
        """Weights of a bin and those below it: int32 (levels, acts, bins, groups + acts)."""
        shape = (len(LEVELS), len(ACTS), len(BINS) + 1, self.message.shape[1])
        found = np.zeros(shape, np.int32)
        for name, act, of in np.ndindex(*shape[:3]):
            rows = [self.bins[one] for one in _level(LEVELS[name], ACTS[act], of) if one in self.bins]
            found[name, act, of] = self.message[rows].sum(0)
        return found

    def scores(self, sentences: Sequence[Seen]) -> np.ndarray:
        """Score the acts, the kinds of slots and the claims of each sentence: int32 (sentences, acts + kinds + 1)."""
        number, bias = self.grams.get, len(self.sentence) - 1
        rows = [[at for at in map(number, whole(one)) if at is not None] for one in sentences]
        return np.array([self.sentence[[*row, bias]].sum(0) for row in rows])

    def acts(self, scores: np.ndarray) -> tuple[dict[str, int], dict[str, int]]:
        """Decide what a message calls for and which acts it holds, from its sentences' scores; scores by name."""
        scores = scores[:, : len(ACTS)]
        rows = _levels(scores)
        sums = self.message[-1] + self.levels[np.arange(len(rows))[:, None], np.arange(len(ACTS)), rows].sum(
            (0, 1)
        )
        number = self.bins.get
        found = [at for name in _patterns(scores) if (at := number(name)) is not None]
        sums = (sums + self.message[found].sum(0)).tolist()
        return dict(zip(GROUPS, sums)), dict(zip(ACTS, sums[len(GROUPS) :]))

    def slots(
        self,
        one: Seen,
        scores: np.ndarray,
        slots: Sequence[str],
        before: set[str],
        previous: Seen | None,
    ) -> dict[str, int]:
        """Score the slots that a sentence may ask for; one of no known kind only where its own words stand."""
        number, own = self.near.get, dict(zip(self.kinds, scores[len(ACTS) : -1].tolist(), strict=True))
        found = {}
        for slot in slots:
            kind = kind_of(slot)
            if slot in one.spots:
                near = of_slot(one, slot, slot in before, previous)
                weight = sum([number(name, 0) for name in near]) + number(
                    f"{kind}/{near[0].partition(':')[0]}", 0
                )
            else:
                weight = self.far[kind]
            found[slot] = weight + (own[kind] if kind in own else self.near["|"])
        return found

    def claim(self, one: Seen, scores: np.ndarray, start: int, end: int) -> int:
        """Score that a value which stands there in a sentence is said of the customer's wishes (`mentions.CLAIM`)."""
        return int(scores[-1]) + sum([self.mention.get(name, 0) for name in of_mention(one, start, end)])

    @cached_property
    def far(self) -> "defaultdict[str, int]":
        """Weights of a slot that a sentence has no words for, by kind."""
        bare = self.near.get("-", 0)
        found: defaultdict[str, int] = defaultdict(lambda: bare)
        found.update({kind: bare + self.near.get(f"{kind}/-", 0) for kind in self.kinds})
        return found


LEVELS = ("best", "second", "first", "last")
"""Whose scores are binned: of each act the best and the second best sentence's, the first sentence's, the last's."""


def binned(scores: np.ndarray) -> list[str]:
    """List the features of a message: in which bins scores of its sentences lie for each act, and of which act each
    sentence is most."""
    scores = scores[:, : len(ACTS)]
    found = []
    for name, row in zip(LEVELS, _levels(scores), strict=True):
        for act, of in zip(ACTS, row.tolist(), strict=True):
            found += _level(name, act, of)
    return [*found, *_patterns(scores)]


def _levels(scores: np.ndarray) -> np.ndarray:
    """Bin the scores of a message's sentences: int (levels, acts)."""
    ordered = -np.sort(-scores, axis=0)
    rows = (ordered[0], ordered[min(1, len(ordered) - 1)], scores[0], scores[-1])
    return np.searchsorted(BINS, np.array(rows))


def _level(name: str, act: str, of: int) -> list[str]:
    return [f"{name} {act} {of}", *(f"{name} {act} >{low}" for low in range(of))]


def _patterns(scores: np.ndarray) -> list[str]:
    best = [ACTS[at] for at in scores.argmax(1).tolist()]
    every, many = sorted(set(best)), f"n{min(len(best), 4)}"
    found = [many, f"first {best[0]}", f"last {best[-1]}"]
    found += [f"any {act}" for act in every] + [f"{many} any {act}" for act in every]
    found += [f"{a} {b}" for a, b in pairwise(best)]
    return found + [f"both {a} {b}" for a in every for b in every if a < b]


@cache
def model() -> Model:
    """Load the weights."""
    with np.load(WEIGHTS, allow_pickle=False) as file:
        names = {name: str(file[name]).split("\n") for name in ("kinds", "grams", "near", "mention", "bins")}
        numbered = {name: {text: at for at, text in enumerate(names[name])} for name in ("grams", "bins")}
        near, mention = (
            dict(zip(names[name], file[f"{name}_weights"].tolist())) for name in ("near", "mention")
        )
        return Model(
            tuple(names["kinds"]),
            numbered["grams"],
            file["sentence"].astype(np.int32),
            near,
            mention,
            numbered["bins"],
            file["message"].astype(np.int32),
        )


__all__ = ["ACTS", "GROUPS", "NEAR", "QUESTIONS", "Model", "binned", "kind_of", "model"]
