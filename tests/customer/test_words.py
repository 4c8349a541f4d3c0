"""What the customer says: variety, and that a careful reader gets back what was meant, whatever the noise."""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ecomlab import ENVIRONMENTS, Shop
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.catalog.vocabulary import vocabulary
from ecomlab.customer import nlu
from ecomlab.customer.acts import Act
from ecomlab.customer.nlg import Speaker
from ecomlab.customer.noise import SLANG, Piece, corrected, noised, plain
from ecomlab.customer.templates import Form, Phrases, common_file
from ecomlab.seeding import pick, rng
from ecomlab.task import Goal
from ecomlab.values import FORMATS, with_article

SPEAKING = [env for env in ENVIRONMENTS if env != "JOURNEY"]
KINDS = list(common_file().acts)
NAMED = "SonicWave Compact Headset"
"""What stands for {seen}."""


@pytest.fixture(scope="module")
def lexicon(big_shop: Shop) -> Lexicon:
    return lexicon_of(big_shop.catalog)


def described(shop: Shop, random: np.random.Generator, kind: str = "", env: str = "CART") -> dict[str, Any]:
    """A product in all the words that there are for one, but not those that make sentences of their own."""
    catalog = shop.catalog
    rows = catalog.type_rows(kind) if kind else range(catalog.size)
    row = rows[int(random.integers(len(rows)))]
    found, record = catalog.type_of(row), catalog.record(row)
    slots: dict[str, Any] = {"type": found.name, "brand": record["brand"]}
    slots["feature"] = catalog.features[catalog.feature_code[row]]
    slots["option"] = pick(random, found.option.values)
    slots |= {f"attr:{name}": value for name, value in record["attributes"].items()}
    price, rating, days = (int(random.integers(*bounds)) for bounds in ((1, 60), (30, 50), (1, 15)))
    slots |= {"price": 500 * price, "rating": rating, "days": days}
    return {name: value for name, value in slots.items() if name not in ENVIRONMENTS[env].phrases.slots}


def act_of(kind: str, slots: dict[str, Any], number: int) -> Act:
    """An act of this kind about such an item."""
    about = {name: value for name, value in slots.items() if name != "type"}
    if kind == "correct" or (number > 1 and kind in ("add", "exchange", "replace", "another line")):
        about["quantity"] = number
    bare = kind in ("quantity", "settle quantity", "drop", "give up", "not told yet", "still wanted")
    return Act(
        kind,
        slots["type"],
        {} if bare else about,
        seen=f"the {NAMED}" if kind == "correct" else NAMED,
        number=number if "quantity" in kind else 0,
    )


def only(form: Form, kind: str, phrases: Phrases) -> Phrases:
    """Phrases that say an act in this form alone, and read as before."""
    made = Phrases(**{name: getattr(phrases, name) for name in phrases.__dataclass_fields__})
    object.__setattr__(made, "acts", {**phrases.acts, kind: (form,)})
    made.__dict__["words"] = phrases.words
    return made


def every_form(env: str) -> Iterator[tuple[str, Form]]:
    for kind, forms in ENVIRONMENTS[env].phrases.acts.items():
        yield from ((kind, form) for form in forms)


@pytest.mark.parametrize("env", SPEAKING)
@pytest.mark.parametrize("p_noise", [pytest.param(0.0, marks=pytest.mark.slow), 1.0])
def test_every_form_of_every_act_is_read_back(
    env: str, p_noise: float, big_shop: Shop, lexicon: Lexicon
) -> None:
    """As the act that it is, and with what it says, of one item or of several; under noise, where no number is said, of
    one or the other. A form of the first environment is tried in a third of the others too."""
    phrases, first = ENVIRONMENTS[env].phrases, ENVIRONMENTS[SPEAKING[0]].phrases
    for number, (kind, form) in enumerate(every_form(env)):
        if (
            phrases is not first
            and form in first.acts.get(kind, ())
            and number % 3 != SPEAKING.index(env) % 3
        ):
            continue
        either = p_noise and "quantity" not in kind
        for count in ((1, 3)[number % 2],) if either else (1, 3):
            random = rng("form", env, number, count)
            act = act_of(kind, described(big_shop, random, env=env), count)
            speaker = Speaker(only(form, kind, phrases), lexicon, p_noise, ("form", env, number, count))
            said = speaker.say([act])
            assert phrases.read(nlu.plain(said, phrases, lexicon))[0] == [], said
            read = nlu.read_acts(said, phrases, lexicon)
            assert p_noise or nlu.plain(said, phrases, lexicon) == said
            assert [entry.kind for entry in read] == [kind], (said, read)
            effect = phrases.effects.get(kind)
            mentions = nlu.read_message(said, phrases, lexicon)
            if effect is None or (effect == "anew" and kind == "another order"):
                assert [m.type for m in mentions] == [""] * len(mentions), said
                continue
            expected = dict(act.slots) | ({"quantity": count} if act.number else {})
            (mention,) = mentions
            assert (mention.effect, mention.type, mention.slots) == (effect, act.type, expected), said


def test_no_sentence_belongs_to_two_acts() -> None:
    for env in SPEAKING:
        texts = [form.text.lower() for _, form in every_form(env)]
        assert len(set(texts)) == len(texts), {text for text in texts if texts.count(text) > 1}


@pytest.mark.parametrize("env", SPEAKING)
def test_acts_said_one_after_the_other_are_told_apart(env: str, big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS[env].phrases
    for seed in range(300):
        random = rng("row", env, seed)
        kinds = [pick(random, KINDS) for _ in range(3)]
        acts = [act_of(kind, described(big_shop, random, env=env), 2) for kind in kinds]
        said = Speaker(phrases, lexicon, 0.5, ("row", seed)).say(acts)
        assert [entry.kind for entry in nlu.read_acts(said, phrases, lexicon)] == kinds, said


@pytest.mark.parametrize("env", SPEAKING)
def test_sentences_read_as_english(env: str, big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS[env].phrases
    for kind, form in every_form(env):
        said = Speaker(only(form, kind, phrases), lexicon, 0.0, ("english",)).say(
            [act_of(kind, described(big_shop, rng("english", form.text), env=env), 2)]
        )
        assert re.fullmatch(r'("\w|[A-Z0-9]).*[.!?]', said), said
        assert not re.search(r"[.!?] [a-z]", said.replace('?" I', "")), said
        assert not re.search(r"[{}()\[\]]|  |\?\.|\.\.| [.,;]|, but I|About the \w+: by", said), said


def test_two_things_are_not_said_in_the_same_words(big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS["CART"].phrases
    for seed in range(50):
        acts = [Act("elaborate", kind.name, {"price": 3000}) for kind in big_shop.catalog.types[:4]]
        said = nlu.read_acts(Speaker(phrases, lexicon, 0.0, ("same", seed)).say(acts), phrases, lexicon)
        frames = {entry.text.replace(entry.fields["wanted"], "") for entry in said}
        assert len(frames) == 4


# Slots.


def values_of(name: str, slot: Any, shop: Shop, random: np.random.Generator) -> Any:
    """A value of a slot with a sentence of its own."""
    for known, made in {
        "money": int(random.integers(1, 900)) * 100,
        "number": int(random.integers(2, 40)),
        "day": f"{int(random.integers(1, 13)):02d}-{int(random.integers(1, 29)):02d}",
        "name": pick(random, shop.catalog.brands),
        "count": int(random.integers(1, 8)),
        "stars": int(random.integers(20, 50)),
        "days": int(random.integers(1, 46)),
        "kg": int(random.integers(2, 31)),
        "suggestions": int(random.integers(1, 8)),
        "names": ["color", "material"],
        "type": pick(random, shop.catalog.types).name,
        "a type": pick(random, shop.catalog.types).name,
        "types": [kind.name for kind in shop.catalog.types[:3]],
        "preferences": ["rating", "price"],
    }.items():
        if slot.format is FORMATS[known]:
            return made
    if name == "replacement":
        return [["brand", pick(random, shop.catalog.brands)], ["attr:color", "Green"], ["price", 4500]]
    words = slot.format.pattern.split("|")
    return slot.format.read(re.sub(r"\\(.)", r"\1", pick(random, words)))


@pytest.mark.parametrize("env", SPEAKING)
@pytest.mark.parametrize("p_noise", [0.0, 1.0])
def test_every_sentence_of_every_slot_is_read_back(
    env: str, p_noise: float, big_shop: Shop, lexicon: Lexicon
) -> None:
    phrases = ENVIRONMENTS[env].phrases
    for name, slot in phrases.slots.items():
        for number, form in enumerate(slot.forms):
            random = rng("slot", env, name, number)
            if hasattr(slot, "sentences"):
                value = next(value for value, some in slot.sentences.items() if form in some)
                pieces = [Piece(form, "fixed")]
            else:
                value = values_of(name, slot, big_shop, random)
                before, _, after = form.partition("{}")
                written = slot.format.write(value)
                pieces = [Piece(before), Piece(written, "fixed", slot.format.others(value)), Piece(after)]
            said = "".join(p.text for p in noised(pieces, p_noise, phrases.words, lexicon, random))
            said = f"Hello. {said[:1].upper()}{said[1:]} Thanks!"
            read, rest = phrases.read(nlu.plain(said, phrases, lexicon))
            assert read == [(name, value)], said
            assert rest.split() == ["Hello.", "Thanks!"]


@pytest.mark.parametrize("env", SPEAKING)
def test_an_act_is_said_in_twenty_ways_a_slot_in_eight_and_an_opening_in_twenty(env: str) -> None:
    phrases = ENVIRONMENTS[env].phrases
    assert all(len(set(phrases.acts[kind])) >= 20 for kind in KINDS)
    for name, slot in phrases.slots.items():
        if name not in ("question", "twist"):  # the questions are those of the policy book
            assert len(set(slot.forms)) >= 8, name
    assert all(len(set(leads)) >= 20 for leads in (*phrases.leads.values(), phrases.lists))
    assert len(set(phrases.intros)) >= 8
    assert len(set(phrases.closings)) >= 10


# Openings.


@pytest.mark.parametrize("env", SPEAKING)
@pytest.mark.parametrize("p_noise", [0.0, 1.0])
def test_items_are_read_from_every_lead(env: str, p_noise: float, big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS[env].phrases
    leads = [lead for some in phrases.leads.values() for lead in some if "{}" in lead]
    for number, lead in enumerate(leads):
        slots = described(big_shop, rng("lead", env, number), env=env)
        speaker = Speaker(phrases, lexicon, p_noise, ("lead", env, number))
        for withheld in ((), ("feature",)):
            goal = Goal({(0, n): v for n, v in slots.items()}, frozenset((0, n) for n in withheld))
            told = {n: v for n, v in slots.items() if n not in withheld}
            said = speaker.opening(goal, [lead.replace("{project}", "our new flat")])
            rest = phrases.read(nlu.plain(said, phrases, lexicon))[1]
            (mention,) = nlu.read_opening(rest, phrases, lexicon)
            assert {"type": mention.type, **mention.slots} == told, said
            assert nlu.is_complete(said) == (not withheld)


@pytest.mark.parametrize("p_noise", [0.0, 1.0])
def test_lists_are_read_item_by_item(p_noise: float, big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS["CART"].phrases
    for seed in range(200):
        random = rng("list", seed)
        kinds = [kind.name for kind in big_shop.catalog.types[seed % 40 : seed % 40 + 3]]
        items = [described(big_shop, random, kind) | {"quantity": n} for n, kind in enumerate(kinds, 2)]
        goal = Goal({(i, n): value for i, item in enumerate(items) for n, value in item.items()}, frozenset())
        said = Speaker(phrases, lexicon, p_noise, ("list", seed)).opening(goal, phrases.leads["default"])
        read = nlu.read_opening(said, phrases, lexicon)
        assert [{"type": m.type, **m.slots} for m in read] == items, said


def test_an_intro_says_which_subtask_begins() -> None:
    intros = {intro: env for env in SPEAKING for intro in ENVIRONMENTS[env].phrases.intros}
    assert all(a == b or a not in b for a in intros for b in intros)
    data = ENVIRONMENTS["JOURNEY"].phrases.data
    for env in SPEAKING:
        phrases = ENVIRONMENTS[env].phrases
        texts = [form.text for _, form in every_form(env)]
        texts += [text for some in (*phrases.leads.values(), *phrases.before.values()) for text in some]
        texts += [*phrases.closings, *phrases.lists]
        texts += [form for slot in phrases.slots.values() for form in slot.forms]
        texts += [text for key in ("first", "next", "interrupt", "back") for text in data[key]]
        assert not [(intro, text) for intro in intros for text in texts if intro.lower() in text.lower()]


def test_turning_to_another_subtask_takes_nothing_back() -> None:
    """An interruption or a return may stand in one message with an answer, a change of mind or a correction."""
    data = ENVIRONMENTS["JOURNEY"].phrases.data
    for key in ("first", "next", "interrupt", "back"):
        assert len(set(data[key])) >= 20
        takes_back = re.compile(r"forget|never mind|instead|changed|wrong|great|perfect")
        assert not [text for text in data[key] if takes_back.search(text.lower())]


# Noise.


def test_a_message_carries_one_noisy_word_and_one_value_in_other_words_at_most(
    big_shop: Shop, lexicon: Lexicon
) -> None:
    phrases = ENVIRONMENTS["CART"].phrases
    words = values = 0
    for seed in range(400):
        acts = [act_of("correct", described(big_shop, rng("one", seed)), 2), Act("thanks")]
        clean = Speaker(phrases, lexicon, 0.0, ("one", seed)).say(acts)
        noisy = Speaker(phrases, lexicon, 1.0, ("one", seed)).say(acts)
        tidy = nlu.plain(noisy, phrases, lexicon)
        changed = [word for word in tidy.split() if word not in clean.split()]
        words += noisy != tidy
        values += bool(changed)
        assert len(changed) <= 9, (clean, noisy)
        same = [a == b for a, b in zip(noisy.split(), tidy.split(), strict=False)]
        assert len(noisy.split()) != len(tidy.split()) or same.count(False) <= 3
    assert words > 350 and values > 350


def test_as_many_messages_are_noisy_as_the_axis_says(big_shop: Shop, lexicon: Lexicon) -> None:
    phrases, noisy = ENVIRONMENTS["CART"].phrases, {"word": 0, "value": 0}
    for seed in range(1000):
        act = Act("elaborate", "Toy Piano", {"price": 4500})
        clean = Speaker(phrases, lexicon, 0.0, ("rate", seed)).say([act])
        said = Speaker(phrases, lexicon, 0.12, ("rate", seed)).say([act])
        noisy["value"] += "$45" not in said
        noisy["word"] += nlu.plain(said, phrases, lexicon) != said
        assert ("$45" in said and said != clean) <= (nlu.plain(said, phrases, lexicon) != said)
    assert 90 < noisy["value"] < 150, noisy  # 120 are expected
    assert 50 < noisy["word"] < 150, noisy


def test_repetitions_are_clean(big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS["CART"].phrases
    for seed in range(60):
        act = act_of("remind", described(big_shop, rng("clean", seed)), 1)
        repeated = Act(act.kind, act.type, act.slots, clean=True)
        clean = Speaker(phrases, lexicon, 0.0, ("clean", seed)).say([repeated])
        assert Speaker(phrases, lexicon, 1.0, ("clean", seed)).say([repeated]) == clean


def test_noise_spares_types_numbers_and_the_only_name(big_shop: Shop, lexicon: Lexicon) -> None:
    words = ENVIRONMENTS["CART"].phrases.words
    for kind in big_shop.catalog.types:
        for brand in big_shop.catalog.brands[:3]:
            named = [Piece(brand, "brand"), Piece(kind.name, "type")]
            pieces = [Piece("this for "), *named, Piece(" 12 $30", "fixed")]
            assert noised(pieces, 1.0, words, lexicon, rng("spared", kind.name, brand)) == pieces


def test_a_typo_in_a_name_stays_nearest_to_that_name(big_shop: Shop, lexicon: Lexicon) -> None:
    words, hit = ENVIRONMENTS["CART"].phrases.words, 0
    for brand, feature in combinations([*big_shop.catalog.brands[:40], *big_shop.catalog.features[:10]], 2):
        kinds = ["brand" if name in big_shop.catalog.brands else "feature" for name in (brand, feature)]
        pieces = [Piece(name, kind) for name, kind in zip((brand, feature), kinds, strict=True)]
        noisy = noised(pieces, 1.0, words, lexicon, rng("typo", brand, feature))
        for piece, typed in zip(pieces, noisy, strict=True):
            hit += typed.text != piece.text
            near = lexicon.nearest(piece.kind, plain(typed.text, words, lexicon))
            assert near is not None and near[0] == piece.text, typed
    assert hit > 30


def test_slang_means_one_thing_and_typos_are_undone_in_one_way() -> None:
    assert len(set(SLANG.values())) >= len(SLANG) - 1
    words = frozenset({"please", "three", "there", "these", "order"})
    assert corrected("plesae", words) == "please"
    assert corrected("pleease", words) == "please"
    assert corrected("ordr", words) == "order"
    assert corrected("kettle", words) == "kettle"
    assert corrected("thre", frozenset({"three", "there"})) == "thre"  # either may be meant


# Values in other words.


def test_every_value_in_other_words_is_read_as_that_value(lexicon: Lexicon) -> None:
    several = 0
    for name, kind in lexicon.types.items():
        for attribute in (kind.option, *kind.attributes):
            slot = "option" if attribute is kind.option else f"attr:{attribute.name}"
            for value in attribute.values:
                for words in lexicon.in_other_words(name, slot, value):
                    several += 1
                    said = f"the {name} {lexicon.phrase(name, slot, words)}"
                    assert nlu.read_item(said, lexicon) == {"type": name, slot: value}, said
    assert several > 300


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("money", 4500, "forty-five dollars"), ("money", 24500, "two hundred and forty-five dollars"),
        ("money", 1999, "19 dollars and 99 cents"), ("money", 100, "one dollar"), ("money", 4500, "45 bucks"),
        ("stars", 45, "four and a half stars"), ("stars", 40, "four stars"), ("stars", 43, "four point three stars"),
        ("days", 7, "a week"), ("days", 14, "two weeks"), ("days", 3, "three days"), ("days", 1, "one day"),
        ("day", "03-22", "the 22nd of March"), ("kg", 8, "eight kilos"), ("count", 3, "three"),
        ("count", 13, "thirteen"), ("number", 120, "one hundred and twenty"),
    ],
)  # fmt: skip
def test_a_value_has_these_other_words(name: str, value: Any, words: str) -> None:
    assert words in FORMATS[name].others(value)
    assert re.fullmatch(FORMATS[name].pattern, words)
    assert FORMATS[name].read(words) == value


def test_every_way_of_writing_a_value_is_read_as_that_value() -> None:
    ranges = {"money": range(1, 120_000, 37), "stars": range(10, 51), "days": range(1, 60), "kg": range(1, 40),
              "number": range(1, 1000), "count": range(1, 20), "suggestions": range(1, 20)}  # fmt: skip
    for name, values in ranges.items():
        for value in values:
            for text in (FORMATS[name].write(value), *FORMATS[name].others(value)):
                assert re.fullmatch(FORMATS[name].pattern, text), text
                assert FORMATS[name].read(text) == value, text


def test_the_price_of_several_is_for_each_and_a_budget_for_all(big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS["CART"].phrases
    for seed in range(60):
        speaker = Speaker(phrases, lexicon, 0.0, ("each", seed))
        for quantity in (1, 2, None):
            slots = {"type": "Toy Piano", "price": 4500, "quantity": quantity}
            said = "".join(piece.text for piece in speaker.item(slots, rng("each", seed), "a"))
            assert bool(re.search(r"\$45 (each|apiece)\b", said)) == (quantity != 1), said
    budget = ENVIRONMENTS["BUNDLE"].phrases.slots["budget"]
    assert all(re.search(r"total|together|everything|whole list|sum", form) for form in budget.forms)


def test_the_sentences_name_nothing_of_the_shop() -> None:
    """A word of theirs that is a type, a brand or a feature would be taken for one."""
    names = {name for d in vocabulary().departments.values() for name in (*d.brands, *d.features, *d.types)}
    texts = [form.literal for env in SPEAKING for _, form in every_form(env)]
    texts += [text for env in SPEAKING for some in ENVIRONMENTS[env].phrases.leads.values() for text in some]
    named = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b", re.I)
    assert not [text for text in set(texts) if named.search(text)]


def test_an_article_goes_by_the_sound_that_follows() -> None:
    vowels = (
        "apple|HDMI Cable|LED Lamp|MP3 Player|HP Printer|8GB Card|18V Drill|F5L011|MSI Motherboard|RCA Radio"
    )
    vowels += "|SSDNow Drive|Uno Game|UGG Slipper|Urban Bag"
    others = "lamp|USB Hub|Universal Remote|Unicorn|One-Touch Opener|RAM|110V Fan|SMART Pen|USOM Cable|UPS|USA Flag"
    others += "|USRobotics Modem|UTP-1400 Cable|Utility Cart|McAfee Card|HI-LITER"
    for article, names in (("an", vowels), ("a", others)):
        for name in names.split("|"):
            assert with_article(name) == f"{article} {name}"
