"""Talkative players for the check of consistency: they ask, summarise and name things before anything is done.

Each is a generator of words to the customer of one job, and reads that job's record of what the customer has said."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ecomlab.catalog import Shop, load_shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.episode.episode import Episode, draw_task
from ecomlab.laws.attackers import constant
from ecomlab.laws.consistency import Claim, Contradiction, Line, Record, Words
from ecomlab.laws.tool_introspection import calls, look_at, results, sources
from ecomlab.other_words import in_letters
from ecomlab.players.asking import QUESTIONS
from ecomlab.players.courteous import questions_for, sentences
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.slots import slot_type
from ecomlab.task import Task
from ecomlab.wishes import Wish

PART, PARTS = 6, 2
"""Messages to the customer before a submit, and such parts a job: the first submit may be refused."""
FIRST_SEED = 7_000_000
EXAMPLES = 3
"""Contradictions of an environment that are shown."""
YOURS = {"I": "you", "I'm": "you're", "I'd": "you'd", "My": "your", "my": "your", "me": "you", "We": "you"}
"""An agent's words for a customer's."""

Talk = Callable[[Episode, Record, np.random.Generator], Iterator[Words]]
"""Words to the customer of the job under way."""
Talker = Callable[[Episode, Callable[[], Record]], Iterator[Words]]
"""Words to the customers of an episode; the function returns the record of the job under way."""


def draw(env: str, seed: int, shop: Shop) -> Task:
    """Draw a task without noise, which means the same with it, at the level of its seed."""
    return draw_task(env, seed % 13, seed, shop, {"p_noise": 0.0})


def begin(task: Task, shop: Shop) -> Episode:
    """Begin an episode of which the turns do not run out before the talk is over."""
    return Episode(replace(task, turns=task.turns + PARTS * PART * len(task.parts)), shop)


def _in_parts(talk: Talk) -> Talker:
    """Submit after each part of the talk, so that whatever is to happen happens."""

    def talked(episode: Episode, record: Callable[[], Record]) -> Iterator[Words]:
        for _ in range(PARTS * len(episode.subtasks)):
            job = episode.subtask
            random = rng("talk", *episode.task.key, job.task.env, episode.turn)
            for _, words in zip(range(PART), talk(episode, record(), random)):
                yield words
                if episode.subtask is not job:
                    break
            else:
                yield Words(message=constant(job.env))

    return talked


def _types(record: Record) -> list[str]:
    return list(dict.fromkeys(kind for kind, _ in record.facts if kind))


def _every_slot(episode: Episode, record: Record, random: np.random.Generator) -> Iterator[Words]:
    """Ask for one slot after another, of an item or at large, then again."""
    phrases, types = record.phrases, _types(record)
    own = [(name, "") for name, slot in phrases.slots.items() if not slot.once and questions_for(name)]
    kinds = [record.lexicon.types[kind] for kind in types]
    products = [(n, k) for n in phrases.asks if n not in ("attr", *phrases.slots) for k in types or [""]]
    if "attr" in phrases.asks:
        products += [(f"attr:{attribute.name}", kind.name) for kind in kinds for attribute in kind.attributes]
    asked = shuffled(random, [*own, *products])[:PART]
    pairs = [asked[at : at + 1 + int(random.integers(2))] for at in range(0, PART, 2)]
    for pair in [*pairs, *pairs]:
        kind = pair[0][1] if random.random() < 0.5 else ""
        text = " ".join(_question(name, random) for name, _ in pair)
        lead = f"About the {kind}: {text[0].lower()}{text[1:]}" if kind else text
        yield Words(lead, tuple(name for name, _ in pair), kind)


def _question(name: str, random: np.random.Generator) -> str:
    forms = questions_for(name) or sentences().attribute
    return pick(random, forms).replace("{}", name.removeprefix("attr:").replace("_", " "))


def _open(episode: Episode, record: Record, random: np.random.Generator) -> Iterator[Words]:
    for question in QUESTIONS:
        yield Words(question)
        if types := _types(record):
            yield Words(f"Anything else about the {(kind := pick(random, types))}?", about=kind)
            if episode.subtask.env.acts_on and random.random() < 0.3:
                yield Words(f"I'm sorry, the {pick(random, types)} has just sold out.")


def _summaries(episode: Episode, record: Record, random: np.random.Generator) -> Iterator[Words]:
    """Read back one to three facts, half of the time with one that is wrong, and ask for more in between."""
    while True:
        scopes = sorted({kind for kind, _ in record.facts})
        kind = pick(random, scopes) if scopes else ""
        facts = [Claim(kind, name, value) for (k, name), (value, _) in record.facts.items() if k == kind]
        claims = shuffled(random, [claim for claim in facts if _said(claim, record)])
        claims = claims[: 1 + int(random.integers(3))] if kind else claims[:1]
        if claims and random.random() < 0.5:
            wrong = shuffled(random, _others(claims[0], record))
            claims = [*wrong[:1], *claims[1:]]
        if kind and (kind, "quantity") not in record.facts and random.random() < 0.5:
            claims = [Claim(kind, "quantity", int(random.integers(1, 5))), *claims]
        if claims:
            asked = (claims[0].slot,) if len(claims) == 1 else ()
            yield Words(_summary(claims, record), asked, kind, tuple(claims))
        yield Words(pick(random, QUESTIONS))


def _summary(claims: Sequence[Claim], record: Record) -> str:
    slots = {claim.slot: claim.value for claim in claims}
    if not claims[0].type:
        said = _said(claims[0], record)
        if said.endswith("?"):
            return f"You would like to know this, is that right: {said}"
        return f"So {said[0].lower()}{said[1:].rstrip('.!?')}, is that right?"
    quantity = slots.get("quantity")
    name = record.lexicon.types[claims[0].type].plural if quantity and quantity > 1 else claims[0].type
    head = [slots.get("feature", ""), slots.get("brand", ""), name]
    if quantity:
        head.insert(0, in_letters(quantity)[0] if in_letters(quantity) else str(quantity))
    tail = [_said(claim, record) for claim in claims if claim.slot not in ("quantity", "feature", "brand")]
    return f"So {' '.join(filter(None, [*head, ', '.join(tail)]))}, is that right?"


def _said(claim: Claim, record: Record) -> str:
    """Word a claim as the agent would; "" where it cannot."""
    name, value, phrases = claim.slot, claim.value, record.phrases
    if isinstance(value, Wish):
        return ""
    template = phrases.slots.get(name)
    if template is not None:
        if template.sentences:
            return ""
        if name == "parts":  # who reads a list back is not "delighted to find"
            return f"the list also has {template.format.write(value)}"
        words = f" {(template.forms or template.texts)[0].replace('{}', template.format.write(value))} "
        for mine, yours in YOURS.items():
            words = words.replace(f" {mine} ", f" {yours} ")
        return words.strip()
    limit = slot_type(name)
    if limit.is_limit and limit.format:
        return phrases.bounds[name][0].replace("{}", limit.format.write(value))
    return (
        str(value)
        if not name.startswith("attr:") and name != "option"
        else record.lexicon.phrase(claim.type, name, value)
    )


def _others(claim: Claim, record: Record) -> list[Claim]:
    """List wrong values of a claim's slot."""
    name, value, kind = claim.slot, claim.value, record.lexicon.types.get(claim.type)
    template, values = record.phrases.slots.get(name), list[Any]()
    if template is not None:
        values = list(template.format.words.values())
    elif slot_type(name).is_limit:
        values = slot_type(name).alternatives(value)
    elif name == "quantity":
        values = [1, 2, 3, 4]
    elif kind is not None:
        values = [
            v for attribute in kind.attributes if name == f"attr:{attribute.name}" for v in attribute.values
        ]
        values += kind.option.values if name == "option" else []
    return [replace(claim, value=other) for other in values if other != value]


def _named(episode: Episode, record: Record, random: np.random.Generator) -> Iterator[Words]:
    """Look at a list, and ask of one row after another whether it is the one."""
    source = pick(random, sources(episode.subtask.env))
    kind = next(iter(_types(record)), "")
    yield Words(message=calls(look_at(source, kind)))
    shown = [result for _, result in results(episode.messages[-2:])]
    rows = [row for result in shown for _, rows in source.rows(result) for row in rows]
    for row in shuffled(random, rows):
        thing = row.get("title") or (f"order of {row['placed']}" if "placed" in row else "")
        if thing:
            yield Words(f"Do you mean the {thing}?", thing=thing)
        if random.random() < 0.3:
            yield Words(pick(random, QUESTIONS))


def _courteous(episode: Episode, record: Callable[[], Record]) -> Iterator[Words]:
    player = episode.env.reference_player(episode.shop, courteous=True)
    while True:
        message = player(list(episode.messages), episode.tools)
        yield Words(message.get("content") or "", message=message)


def _everything(episode: Episode, record: Record, random: np.random.Generator) -> Iterator[Words]:
    """Talk in all of these ways at once."""
    talks = [talk(episode, record, random) for talk in (_every_slot, _open, _summaries, _named)]
    while talks:
        talk = pick(random, talks)
        words = next(talk, None)
        if words is None:
            talks.remove(talk)
        else:
            yield words


TALKERS: dict[str, Talker] = {
    "courteous": _courteous,
    "every slot": _in_parts(_every_slot),
    "open questions": _in_parts(_open),
    "summaries": _in_parts(_summaries),
    "names": _in_parts(_named),
    "everything": _in_parts(_everything),
}


@dataclass(frozen=True)
class Found:
    """What one episode showed: its player, the number of lines, sentences that no form fits, and contradictions."""

    task: str
    lines: int
    unread: tuple[str, ...]
    contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True)
class Talked:
    """What the episodes of one environment showed: how many hold a contradiction, how many sentences fit no form, and a
    few of the contradictions in words."""

    env: str
    episodes: int
    contradicting: int
    unread: int
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, env: str, found: Sequence[Found]) -> "Talked":
        bad = [f"{one.task}: {first}" for one in found for first in one.contradictions[:1]]
        return cls(env, len(found), len(bad), sum(len(one.unread) for one in found), tuple(bad[:EXAMPLES]))


def play(task: Task, shop: Shop, player: str) -> Found:
    """Play an episode with a talkative player, and check what each of its customers said."""
    lexicon, records = lexicon_of(shop.catalog), dict[int, Record]()
    lines, found = 0, list[Contradiction]()
    episode = begin(task, shop)

    def take(line: Line, number: int) -> None:
        nonlocal lines
        lines += 1
        found.extend(records[number].take(line))

    talk = TALKERS[player](episode, lambda: records[number])
    while True:
        number = episode.subtasks.index(episode.subtask)
        if number not in records:
            job = episode.subtask
            records[number] = Record(job.env.phrases, lexicon)
            take(Line(job.task.opening, opening=True), number)
        words = None if episode.done else next(talk, None)
        if words is None:
            break
        message = words.message or {"role": "assistant", "content": words.text}
        heard = [m["content"] for m in episode.act(message).messages if m["role"] == "user"]
        if episode.subtask is not episode.subtasks[number]:
            heard.pop()  # the transition to another job
        for text in heard:
            take(Line(text, after=words), number)
    unread = tuple(text for record in records.values() for text in record.unread)
    return Found(f"{task.env} {task.key.level} {task.key.seed} {player}", lines, unread, tuple(found))


def check(env: str, seeds: Iterable[int], catalog: str | int = 20_000) -> list[Found]:
    """Play one task a seed, at d = 0..12 in turn, with each of the talkers in turn."""
    shop, names = load_shop(catalog), list(TALKERS)
    tasks = ((draw(env, seed, shop), names[seed % len(names)]) for seed in seeds)
    return [play(task, shop, player) for task, player in tasks]
