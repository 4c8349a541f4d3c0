"""Fit the reader's weights from the banks, and write ecomlab/customer/reading/reader.npz: `make reader`.

The banks are questions and messages of agents, put into real conversations (ecomlab/laws/banks.py) and seen as the
reader sees them. `--test NAME` leaves banks, or writers of `read`, out and asks the fitted model about them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sparse
import typer
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from ecomlab import load_shop
from ecomlab.catalog import Shop
from ecomlab.customer.reading.features import Seen, of_mention, of_slot, seen, whole
from ecomlab.customer.reading.mentions import CLAIM, places
from ecomlab.customer.reading.model import ACTS, GROUPS, NEAR, QUESTIONS, SCALE, Model, binned, kind_of
from ecomlab.customer.reading.words import AMOUNTS, WEIGHTS, Sentence, sentences
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.laws import banks
from ecomlab.laws.banks import NAMES, TRIES, UNNAMED, Case, Listener, filled, named_acts, slot_named
from ecomlab.seeding import rng

HERE = Path(__file__).parent
LAWS = Path(banks.__file__).parent
UNSEEN = ("fifth", "tenth")
"""Banks of questions that nothing is fitted to."""
FORMS = {"yesno": "CHECK", "either": "CHOICE", "scope": "CHOICE"}
"""Acts of the forms of questions in the banks that label forms; others ask for a value."""
FOLDS, ROUNDS = 5, 3
SENTENCE_C, NEAR_C, CLAIM_C, MESSAGE_C = 0.05, 0.03, 0.02, 0.03
"""Strength of the fits: inverse regularization of the SVMs and of the logistic regression."""
QUESTION = 0.3
"""Weight in the fit of acts of a case that asks for slots alone: there are thousands."""
LEAST, SLIGHT = 2, 3
"""Cases in which an n-gram occurs at least, and the largest weight of those that are left out."""


@dataclass
class Row:
    """A case and what the model sees of it."""

    case: Case
    sentences: list[Sentence]
    seen: list[Seen]

    def __post_init__(self) -> None:
        self.grams = [whole(one) for one in self.seen]
        self.weight = QUESTION if self.case.acts is None and self.case.asks and not self.case.open else 1.0
        parts, text = self.case.parts, self.case.text
        self.acts = None if self.case.acts is None else named_acts(self.case.acts)
        self.labels: list[tuple[frozenset[str], frozenset[str]]] | None = None
        if parts is not None:
            self.labels = []
            for sentence in self.sentences:
                cuts = [(max(sentence.start, part.start), min(sentence.end, part.end)) for part in parts]
                whole_length = len(text[sentence.start : sentence.end].strip())
                here = [
                    part
                    for part, (low, high) in zip(parts, cuts)
                    if low < high and len(text[low:high].strip()) >= min(3, whole_length)
                ]
                acts = frozenset().union(*(named_acts(part.acts) for part in here))
                self.labels.append((acts, frozenset().union(*(part.asks for part in here))))

    def claims(self) -> Iterator[tuple[int, int, int, bool]]:
        """Yield the values whose role is labelled, as (sentence, start, end, whether it is said of a wish). An amount
        that stands in no gap is none: "two more questions"."""
        parts = self.case.parts or ()
        spans = [span for part in parts for span in part.roles]
        labelled = any(role != "?" for *_, role in spans)
        for number, (sentence, one) in enumerate(zip(self.sentences, self.seen)):
            for start, end in places(sentence, one) if labelled else ():
                tokens = sentence.tokens
                low, high = tokens[start].start, tokens[end - 1].end
                roles = [role for first, last, role in spans if first < high and low < last]
                if roles and roles[0] != "?":
                    yield number, start, end, roles[0] == "W"
                elif not roles and tokens[start].stem in AMOUNTS:
                    yield number, start, end, False

    def holds(self, act: str) -> bool | None:
        """Tell whether the case holds an act; None where its bank does not say."""
        case = self.case
        if act == "NOTED" and self.acts is not None and self.labels is None:
            return None if "TELL" in self.acts else False
        if self.acts is not None:
            return act in self.acts
        if act in QUESTIONS:
            asks = bool(case.asks) or case.group == "which"
            return asks and act == FORMS.get(case.group, "SET")
        if act == "OPEN":
            return case.open
        if act == "NONSENSE" or case.group == "nonsense":
            return act == "NONSENSE" and case.group == "nonsense"
        return None if len(self.seen) > 1 else False


def rows_of(cases: Sequence[Case]) -> list[Row]:
    found = []
    for case in cases:
        some = sentences(case.text, case.listener.vocabulary.known)
        if some:
            found.append(Row(case, some, seen(some, case.listener.vocabulary)))
    return found


def matrix(lists: Sequence[Sequence[str]], numbered: dict[str, int]) -> sparse.csr_matrix:
    """Make the matrix of which n-grams each list holds."""
    places, ends = [], [0]
    for some in lists:
        places += [at for one in some if (at := numbered.get(one)) is not None]
        ends.append(len(places))
    return sparse.csr_matrix((np.ones(len(places)), places, ends), (len(lists), len(numbered)))


def numbered(lists: Sequence[Sequence[str]], least: int = LEAST) -> dict[str, int]:
    counts = Counter(one for some in lists for one in some)
    return {one: at for at, one in enumerate(sorted(one for one, n in counts.items() if n >= least))}


def fit(
    x: sparse.csr_matrix, y: np.ndarray, weights: np.ndarray | None, c: float
) -> tuple[np.ndarray, float]:
    one = LinearSVC(C=c, max_iter=2_000, tol=1e-3, random_state=0).fit(x, y, sample_weight=weights)
    return one.coef_[0], float(one.intercept_[0])


@dataclass
class Sentences:
    """All sentences of the cases: their n-grams, each one's case, and the weight of that."""

    x: sparse.csr_matrix
    own: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[Row], grams: dict[str, int]) -> "Sentences":
        own = np.array([at for at, row in enumerate(rows) for _ in row.seen])
        weight = np.array([row.weight for row in rows])[own]
        return cls(matrix([some for row in rows for some in row.grams], grams), own, weight)


def fit_act(
    some: Sentences, held: np.ndarray, labels: np.ndarray, within: np.ndarray
) -> tuple[np.ndarray, float]:
    """Fit an act's weights to the sentences of the cases `within`. `held`: whether each case holds it (1, 0; -1 is
    unknown), `labels`: whether each sentence does. Where only the message is labelled, at least one sentence holds its
    acts: the one that scores best, which is found by fitting again."""
    own, known = some.own, (held[some.own] >= 0) & within[some.own]
    lone = np.bincount(own)[own] == 1
    y = np.where(labels >= 0, labels, held[own]) == 1
    unsure, target = y & ~lone & (labels < 0), y.copy()
    x, weight = some.x[known], some.weight[known]
    for _ in range(ROUNDS):
        coefficients, bias = fit(x, target[known], weight, SENTENCE_C)
        if not unsure[known].any():
            break
        score = some.x @ coefficients + bias
        best = np.full(len(held), -np.inf)
        np.maximum.at(best, own, score)
        target = np.where(unsure, (score >= best[own]) | (score > 0.3), y)
    return coefficients, bias


def fit_acts(rows: Sequence[Row], some: Sentences, folds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit the acts' weights, and score every sentence by weights that were fitted to the other folds."""
    whole_ones = [row.holds(act) for act in ACTS for row in rows]
    held = np.array([-1 if one is None else one for one in whole_ones], np.int8).reshape(len(ACTS), -1)
    labels = np.full((len(ACTS), len(some.own)), -1, np.int8)
    places = iter(range(len(some.own)))
    for row in rows:
        for number, place in zip(range(len(row.seen)), places):
            if row.labels is not None:
                labels[:, place] = [act in row.labels[number][0] for act in ACTS]
    parts = [np.ones(len(rows), bool), *(folds != fold for fold in range(FOLDS))]
    found = Parallel(n_jobs=-1)(
        delayed(fit_act)(some, held[at], labels[at], part) for part in parts for at in range(len(ACTS))
    )
    weights = np.array([np.append(*one) for one in found]).reshape(len(parts), len(ACTS), -1)
    scores = np.zeros((len(some.own), len(ACTS)))
    for fold in range(FOLDS):
        inside = folds[some.own] == fold
        scores[inside] = some.x[inside] @ weights[1 + fold, :, :-1].T + weights[1 + fold, :, -1]
    return weights[0].T, scores


def fit_slots(
    rows: Sequence[Row], grams: dict[str, int], kinds: Sequence[str]
) -> tuple[np.ndarray, dict[str, float]]:
    """Fit the weights by which a sentence of a message that asks does so for a slot: its kind's of the sentence's
    n-grams, and all slots' of n-grams around the slot's own words. A part of the pairs is seen again as a slot of no
    known kind."""
    random, lists, y, groups, labelled = rng("reader", "slots"), [], [], [], []
    group = 0
    for row in rows:
        case = row.case
        if not (case.asks or set(GROUPS["ask"]) & (row.acts or frozenset())):
            continue
        slots = case.listener.vocabulary.slots
        said: set[str] = set()
        for number, one in enumerate(row.seen):
            previous = row.seen[number - 1] if number else None
            label = row.labels[number] if row.labels is not None else None
            asks = case.asks if label is None else label[1]
            for at, slot in enumerate(slots):
                if slot not in asks and (UNNAMED in asks or not case.certain):
                    continue
                kind = kind_of(slot)
                near = of_slot(one, slot, slot in said, previous) if slot in one.spots else ["-"]
                near = [*near, f"{kind}/{near[0].partition(':')[0]}"]
                lists.append([*(f"{kind}|{gram}" for gram in row.grams[number]), f"{kind}|", *near])
                if near[0] != "-" and random.random() < 0.2:
                    lists.append(["|", *near[:-1]])
                    copies = 2
                else:
                    copies = 1
                y += [slot in asks] * copies
                groups += [group + at] * copies
                labelled += [label is not None] * copies
            said |= set(one.spots)
        group += len(slots)
    names = numbered(lists)
    x, asked, own = matrix(lists, names), np.array(y), np.array(groups)
    size = np.bincount(own)
    unsure, target = asked & (size[own] > 1) & ~np.array(labelled), asked.copy()
    for _ in range(2):
        weights, bias = fit(x, target, None, NEAR_C)
        score = x @ weights + bias
        best = np.full(len(size), -np.inf)
        np.maximum.at(best, own, score)
        target = np.where(unsure, (score >= best[own]) | (score > 0), asked)
    table = np.zeros((len(grams) + 1, len(kinds)))
    around: dict[str, float] = {"|": 0.0}
    for name, at in names.items():
        kind, bar, gram = name.partition("|")
        if bar and kind in kinds:
            column = kinds.index(kind)
            if gram in grams:
                table[grams[gram], column] = weights[at]
            elif not gram:
                table[-1, column] = weights[at] + bias
        else:
            around[name] = weights[at]
    around["|"] += bias
    return table, around


def fit_claims(rows: Sequence[Row], grams: dict[str, int]) -> tuple[np.ndarray, dict[str, float]]:
    """Fit the weights by which a value is said of the customer's wishes: of the sentence's n-grams (with a bias), and
    of the words around it."""
    lists, y = [], []
    for row in rows:
        for number, start, end, wished in row.claims():
            around = of_mention(row.seen[number], start, end)
            lists.append([*(f"|{gram}" for gram in row.grams[number] if gram in grams), *around])
            y.append(wished)
    names = numbered(lists)
    weights, bias = fit(matrix(lists, names), np.array(y), None, CLAIM_C)
    column = np.zeros((len(grams) + 1, 1))
    column[-1] = bias
    mention = dict[str, float]()
    for name, at in names.items():
        if name.startswith("|"):
            column[grams[name[1:]]] = weights[at]
        else:
            mention[name] = weights[at]
    return column, mention


def fit_messages(rows: Sequence[Row], scores: Sequence[np.ndarray]) -> tuple[dict[str, int], np.ndarray]:
    """Fit which acts a message holds by its sentences' scores: columns of groups, then of acts; the last row is the
    bias."""
    lists = [binned(np.rint(one * SCALE)) for one in scores]
    bins = numbered(lists, 4)
    x = matrix(lists, bins)
    weight = np.array([row.weight for row in rows])
    columns = []
    for acts in (*GROUPS.values(), *((act,) for act in ACTS)):
        held = [[row.holds(act) for act in acts] for row in rows]
        known = np.array([None not in some or True in some for some in held])
        y = np.array([any(bool(one) for one in some) for some in held])
        one = LogisticRegression(C=MESSAGE_C, max_iter=2_000).fit(x[known], y[known], weight[known])
        columns.append(np.append(one.coef_[0], one.intercept_[0]))
    return bins, np.array(columns).T


def fold_of(case: Case) -> int:
    """Put what one writer wrote into one fold."""
    return int(rng("reader", "fold", case.bank, case.group).integers(FOLDS))


def fit_model(rows: Sequence[Row]) -> Model:
    """Fit all three layers; the third to scores of sentences by models that have not seen their writer."""
    grams = numbered([some for row in rows for some in row.grams])
    some = Sentences.of(rows, grams)
    acts, scores = fit_acts(rows, some, np.array([fold_of(row.case) for row in rows]))
    ends = np.cumsum(np.bincount(some.own, minlength=len(rows)))[:-1]
    bins, message = fit_messages(rows, np.split(scores, ends))
    kinds = tuple(sorted({kind_of(slot) for row in rows for slot in row.case.asks if slot != UNNAMED}))
    slots, near = fit_slots(rows, grams, kinds)
    claims, mention = fit_claims(rows, grams)
    return packed(kinds, grams, np.hstack([acts, slots, claims]), near, mention, bins, message)


def packed(
    kinds: tuple[str, ...],
    grams: dict[str, int],
    sentence: np.ndarray,
    near: dict[str, float],
    mention: dict[str, float],
    bins: dict[str, int],
    message: np.ndarray,
) -> Model:
    """Round the weights, and leave out n-grams without any."""
    whole_weights = np.clip(np.rint(sentence * SCALE), -32_000, 32_000).astype(np.int32)
    kept = [gram for gram, at in grams.items() if np.abs(whole_weights[at]).max() > SLIGHT]
    rows = whole_weights[[*(grams[gram] for gram in kept), -1]]
    rounded, around = (
        {name: round(weight * SCALE) for name, weight in some.items()} for some in (near, mention)
    )
    return Model(
        kinds,
        {gram: at for at, gram in enumerate(kept)},
        rows,
        {name: weight for name, weight in rounded.items() if abs(weight) > 1 or name == "|"},
        {name: weight for name, weight in around.items() if abs(weight) > 1},
        bins,
        np.rint(message * SCALE).astype(np.int32),
    )


def save(one: Model, path: Path) -> None:
    np.savez_compressed(
        path,
        kinds="\n".join(one.kinds),
        grams="\n".join(one.grams),
        sentence=one.sentence.astype(np.int16),
        near="\n".join(one.near),
        near_weights=np.array(list(one.near.values()), np.int16),
        mention="\n".join(one.mention),
        mention_weights=np.array(list(one.mention.values()), np.int16),
        bins="\n".join(one.bins),
        message=one.message.astype(np.int16),
    )


def tested(one: Model, rows: Sequence[Row], name: str, show: int) -> None:
    """Print the share of cases of which exactly what is asked for, and the groups of acts, are found."""
    exact, asked, missed = Counter[str](), Counter[str](), []
    for row in rows:
        case, slots = row.case, row.case.listener.vocabulary.slots
        if not case.certain:
            continue
        scores = one.scores(row.seen)
        groups, _ = one.acts(scores)
        said: set[str] = set()
        got: set[str] = set()
        held = {group for group, score in groups.items() if score > 0} or {""}
        question = [max(some) for some in scores[:, [ACTS.index(act) for act in GROUPS["ask"]]].tolist()]
        for number, sentence in enumerate(row.seen):
            if "ask" in held and (question[number] > NEAR or question[number] == max(question)):
                previous = row.seen[number - 1] if number else None
                found = one.slots(sentence, scores[number], slots, said, previous)
                got |= {slot for slot, score in found.items() if score > 0}
            said |= set(sentence.spots)
        wanted = []
        for acts in (row.acts, case.or_acts and named_acts(case.or_acts)):
            if acts:
                wanted.append({group for group, some in GROUPS.items() if set(some) & acts} or {""})
        if row.acts is None:
            wanted = [{"ask"} if case.asks else set()]
            wanted[0] |= {"open"} if case.open else set()
            wanted[0] |= {"back"} if case.group == "nonsense" else set()
            wanted = [wanted[0] or {""}]
            if case.group in ("which", "nothing"):
                wanted += [{"ask"}, {"open"}, {"judge"}]
        slots_right = "ask" not in held or got == case.asks or UNNAMED in case.asks or not case.asks
        right = held in wanted
        asked["all"] += 1
        exact["acts"] += right
        exact["slots"] += slots_right
        exact["both"] += right and slots_right
        if not (right and slots_right):
            missed.append((case.text.replace("\n", " // "), wanted, set(case.asks), "->", held, got))
        for number, start, end, wished in row.claims():
            asked["claims"] += 1
            exact["claims"] += (one.claim(row.seen[number], scores[number], start, end) > CLAIM) == wished
    total = max(1, asked["all"])
    rates = {what: round(count / max(1, asked.get(what, total)), 3) for what, count in sorted(exact.items())}
    print(name, total, rates)
    for at in rng("shown").permutation(len(missed))[:show].tolist():
        print("   ", *missed[at])


def questions(path: Path, shop: Shop) -> list[Case]:
    """Put a bank of questions, of each one once, to customers who have the slots that it asks for."""
    found = []
    for number, row in enumerate(banks.rows_of(path)):
        env = row.get("sub") or row["env"]
        env = env if env in ENVIRONMENTS and env != "JOURNEY" else "CART"
        random = rng("bank", path.stem, number)
        for place in random.permutation(len(banks.tasks_of(env, shop)))[:TRIES].tolist():
            one = banks.listener(env, place, shop)
            case = question_to(row, path.stem, one, shop, random)
            if case is not None:
                found.append(case)
                break
    return found


def question_to(
    row: Mapping[str, Any], bank: str, one: Listener, shop: Shop, random: np.random.Generator
) -> Case | None:
    """Fill a question's gaps from the first of the customer's slots that it asks for; None where it does not fit."""
    wanted = [slot_named(NAMES.get(name, name), row.get("attr"), one.slots) for name in row["slots"]]
    meant = [slot for slot in wanted if slot is not None]
    if len(meant) < len(wanted):
        return None
    item = meant[0].item if meant else 0
    kind = next((slot.value for slot in one.slots if slot.name == "type" and slot.item == item), "")
    kind = kind or (one.types[0] if one.types else "") or "order"
    text = filled(row["text"], meant, kind, "attr" in row, one.phrases, shop, random)
    if text is None:
        return None
    names = frozenset(slot.name for slot in meant)
    return Case(bank, row["env"], row.get("form", "wh"), one, text, names, row["open"])


def main(
    test: Annotated[list[str] | None, typer.Option(help="banks, or writers of read as read:6")] = None,
    show: int = 0,
    write: bool = True,
) -> None:
    """Fit the weights; write them unless banks are left out."""
    shop, left_out = load_shop(), set(test or ())
    cases = [
        case
        for folder in (LAWS / "questions", HERE / "questions")
        for path in sorted(folder.glob("*.jsonl"))
        if path.stem not in UNSEEN
        for case in questions(path, shop)
        if case.group != "nothing"
    ]
    for path in (LAWS / "messages" / "read.jsonl", *sorted((HERE / "messages").glob("*.jsonl"))):
        cases += banks.messages(path, shop)
    rows = rows_of(cases)

    def apart(row: Row) -> str:
        names = {row.case.bank, f"{row.case.bank}:{row.case.group}"} & left_out
        return min(names, default="")

    one = fit_model([row for row in rows if not apart(row)])
    print(f"{len(rows)} cases, {len(one.grams)} n-grams of sentences, {len(one.near)} around slots")
    if write and not left_out:
        save(one, WEIGHTS)
        print(f"{WEIGHTS}: {WEIGHTS.stat().st_size / 2**20:.1f} MiB")
    for name in sorted(left_out):
        tested(one, [row for row in rows if apart(row) == name], name, show)


if __name__ == "__main__":
    typer.run(main)
