"""What the customer says: variety, and that a careful reader gets back what was meant, whatever the noise."""

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from round_trip import act_of, described, fault, frames, same_words, saying

from ecomlab import ENVIRONMENTS, Shop, make_task
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.catalog.synthetic import vocabulary
from ecomlab.customer import nlu, utterances
from ecomlab.customer.acts import Act
from ecomlab.customer.nlg import Speaker
from ecomlab.customer.noise import SLANG, Piece, corrected, noised, plain
from ecomlab.customer.templates import WISHES
from ecomlab.customer.utterances import PLAIN, REGISTERS, Form, Manner
from ecomlab.seeding import EVALUATION_SEEDS, pick, rng
from ecomlab.settings import ConfigError
from ecomlab.task import Goal, TaskKey
from ecomlab.values import FORMATS, with_article

SPEAKING = [env for env in ENVIRONMENTS if env != "JOURNEY"]
TURNS = ("next", "interrupt", "back")
KINDS = [
    act for act in utterances.frames_of("", False) if not act.startswith(("before ", "slot ", "opening"))
]


@pytest.fixture(scope="module")
def lexicon(big_shop: Shop) -> Lexicon:
    return lexicon_of(big_shop.catalog)


def spoken(kind: str, form: Form, shop: Shop, number: int = 1, env: str = "CART") -> Act:
    random = rng("spoken", kind, form.text, number)
    return act_of(kind, form, described(shop, random, ENVIRONMENTS[env].phrases), number, random)


def every_form(env: str) -> Iterator[tuple[str, Form]]:
    for kind, forms in ENVIRONMENTS[env].phrases.acts.items():
        yield from ((kind, form) for form in forms)


@pytest.mark.parametrize("env", SPEAKING)
@pytest.mark.parametrize("p_noise", [0.0, 1.0])
def test_every_frame_is_read_back(env: str, p_noise: float, big_shop: Shop) -> None:
    """As the act that it is, with the slots that were said. A frame of several environments is tried in one of them."""
    phrases, first = ENVIRONMENTS[env].phrases, set(frames(ENVIRONMENTS["CART"].phrases))
    faults = [
        why
        for number, (name, form) in enumerate(frames(phrases))
        if (name, form) not in first or number % len(SPEAKING) == SPEAKING.index(env)
        if (why := fault(name, form, phrases, big_shop, p_noise, (1, 3)[number % 2]))
    ]
    assert faults == []


@pytest.mark.slow
@pytest.mark.parametrize("env", SPEAKING)
def test_every_frame_is_read_back_in_every_environment(env: str, big_shop: Shop) -> None:
    phrases = ENVIRONMENTS[env].phrases
    trials = [(p_noise, count) for p_noise in (0.0, 1.0) for count in (1, 3)]
    found = (fault(*frame, phrases, big_shop, *trial) for frame in frames(phrases) for trial in trials)
    assert [why for why in found if why] == []


@pytest.mark.parametrize("env", SPEAKING)
def test_no_sentence_belongs_to_two_acts(env: str) -> None:
    words: dict[str, set[str]] = {}
    for kind, form in every_form(env):
        words.setdefault(same_words(form), set()).add(kind)
    assert {text: names for text, names in words.items() if len(names) > 1} == {}


@pytest.mark.parametrize("env", SPEAKING)
def test_acts_said_one_after_the_other_are_told_apart(env: str, big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS[env].phrases
    for seed in range(300):
        random = rng("row", env, seed)
        kinds = [pick(random, KINDS) for _ in range(3)]
        acts = [spoken(kind, pick(random, phrases.acts[kind]), big_shop, 2, env) for kind in kinds]
        said = Speaker(phrases, lexicon, 0.5, ("row", seed)).say(acts)
        assert [entry.kind for entry in nlu.read_acts(said, phrases, lexicon)] == kinds, said


@pytest.mark.parametrize("env", SPEAKING)
def test_sentences_read_as_english(env: str, big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS[env].phrases
    for kind, form in every_form(env):
        speaker = Speaker(saying(kind, form, phrases), lexicon, 0.0, ("english",))
        said = speaker.say([spoken(kind, form, big_shop, 2, env)])
        assert re.fullmatch(r'("\w|[A-Z0-9]).*[.!?]', said), said
        assert not re.search(r"[.!?] [a-z]", said.replace('?" I', "")), said
        assert not re.search(r"[{}()\[\]]|  |\?\.|\.\.| [.,;]|About the \w+: by", said), said


def test_two_things_are_not_said_in_the_same_words(big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS["CART"].phrases
    for seed in range(50):
        acts = [Act("elaborate", kind.name, {"price": 3000}) for kind in big_shop.catalog.types[:4]]
        said = nlu.read_acts(Speaker(phrases, lexicon, 0.0, ("same", seed)).say(acts), phrases, lexicon)
        frames = {entry.text.replace(entry.fields["wanted"], "") for entry in said}
        assert len(frames) == 4


# Slots.


@pytest.mark.parametrize("env", SPEAKING)
@pytest.mark.parametrize("p_noise", [0.0, 1.0])
def test_every_sentence_of_a_slot_is_read_back(env: str, p_noise: float, big_shop: Shop) -> None:
    phrases = ENVIRONMENTS[env].phrases
    said = (
        (name, text)
        for name, slot in phrases.slots.items()
        for some in slot.sentences.values()
        for text in some
    )
    found = (fault(f"slot {name}", Form(text), phrases, big_shop, p_noise) for name, text in said)
    assert [why for why in found if why] == []


@pytest.mark.parametrize("env", SPEAKING)
def test_there_are_so_many_ways_to_say_an_act_a_slot_and_an_opening(env: str) -> None:
    phrases = ENVIRONMENTS[env].phrases
    assert all(len(set(phrases.acts[kind])) >= 5 for kind in KINDS)
    of_wishes = [slot.format in WISHES.values() for slot in phrases.slots.values()]
    for slot, owns_words in zip(phrases.slots.values(), of_wishes, strict=True):
        assert len(slot.texts) >= (4 if owns_words else 8), (
            slot.texts
        )  # a wish says most of its sentence itself
    assert len(phrases.leads["default"]) >= (150 if env == "CART" else 40)
    for some in filter(None, phrases.leads.values()):
        assert {form.register for form in some} >= {*REGISTERS} - {"terse"}
        assert all(sum(form.held is held for form in some) >= 15 for held in (True, False))
    assert len(set(phrases.intros)) >= 8


# The bank and the manner of a customer.


def test_a_fault_of_the_bank_is_named_by_line_and_key(tmp_path: Path) -> None:
    good = '{"act": "yes", "env": "", "register": "plain", "text": "Yes.", "held": false}'
    bank = tmp_path / "bank.jsonl"
    bank.write_text("\n".join((good, good.replace("plain", "shouting"), good.replace("act", "kind"))))
    with pytest.raises(ConfigError, match=r"line 2: register: .*\n.*line 3: .*act"):
        utterances.read_bank(bank)


def test_tasks_of_evaluation_speak_the_held_out_half_and_no_others_do(shop: Shop) -> None:
    keys = [
        make_task("CART", 3, first + n, shop).key for first in (0, EVALUATION_SEEDS.start) for n in (1, 2)
    ]
    for key in keys:
        manner = Manner.of(key)
        for forms in ENVIRONMENTS["CART"].phrases.acts.values():
            assert {form.held for form in manner.fitting(forms)} == {key.seed in EVALUATION_SEEDS}


def test_a_customer_keeps_one_manner() -> None:
    forms = [Form(register, register) for register in REGISTERS]
    manners = [Manner.of(TaskKey("CART", 1, 0, seed, "")) for seed in range(200)]
    spoken = {frozenset(form.register for form in manner.fitting(forms)) for manner in manners}
    assert frozenset().union(*spoken) == set(REGISTERS) and all(PLAIN in some for some in spoken)
    assert not any({"casual", "formal"} <= some or {"warm", "impatient"} <= some for some in spoken)


# Openings.


@pytest.mark.parametrize("p_noise", [0.0, 1.0])
def test_lists_are_read_item_by_item(p_noise: float, big_shop: Shop, lexicon: Lexicon) -> None:
    phrases = ENVIRONMENTS["CART"].phrases
    for seed in range(200):
        random = rng("list", seed)
        kinds = [kind.name for kind in big_shop.catalog.types[seed % 40 : seed % 40 + 3]]
        items = [
            described(big_shop, random, phrases, kind) | {"quantity": n} for n, kind in enumerate(kinds, 2)
        ]
        goal = Goal({(i, n): value for i, item in enumerate(items) for n, value in item.items()}, frozenset())
        said = Speaker(phrases, lexicon, p_noise, ("list", seed)).opening(goal)
        read = nlu.read_opening(said, phrases, lexicon)
        assert [{"type": m.type, **m.slots} for m in read] == items, said


def test_an_intro_says_which_subtask_begins() -> None:
    intros = {intro: env for env in SPEAKING for intro in ENVIRONMENTS[env].phrases.intros}
    assert all(a == b or a not in b for a in intros for b in intros)
    data, acts = ENVIRONMENTS["JOURNEY"].phrases.data, ENVIRONMENTS["JOURNEY"].phrases.acts
    for env in SPEAKING:
        phrases = ENVIRONMENTS[env].phrases
        texts = [form.text for _, form in every_form(env)]
        texts += [
            form.text for table in (phrases.leads, phrases.before) for some in table.values() for form in some
        ]
        texts += [text for slot in phrases.slots.values() for text in slot.texts]
        texts += [*data["first"], *(form.text for key in TURNS for form in acts[key])]
        assert not [(intro, text) for intro in intros for text in texts if intro.lower() in text.lower()]


def test_turning_to_another_subtask_takes_nothing_back() -> None:
    """An interruption or a return may stand in one message with an answer, a change of mind or a correction."""
    phrases = ENVIRONMENTS["JOURNEY"].phrases
    takes_back = re.compile(r"forget|never mind|instead|changed|wrong|great|perfect")
    for texts in (phrases.data["first"], *([form.text for form in phrases.acts[key]] for key in TURNS)):
        assert len(set(texts)) >= 15
        assert not [text for text in texts if takes_back.search(text.lower())]


# Noise.


def test_a_message_carries_one_noisy_word_and_one_value_in_other_words_at_most(
    big_shop: Shop, lexicon: Lexicon
) -> None:
    phrases = ENVIRONMENTS["CART"].phrases
    words = values = 0
    for seed in range(400):
        acts = [
            spoken("correct", pick(rng("one", seed), phrases.acts["correct"]), big_shop, 2),
            Act("thanks"),
        ]
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
        act = spoken("elaborate", pick(rng("clean", seed), phrases.acts["elaborate"]), big_shop)
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
    phrases, several = ENVIRONMENTS["CART"].phrases, 0
    for name, kind in lexicon.types.items():
        for attribute in (kind.option, *kind.attributes):
            slot = "option" if attribute is kind.option else f"attr:{attribute.name}"
            for value in attribute.values:
                for words in lexicon.in_other_words(name, slot, value):
                    several += 1
                    said = f"the {name} {lexicon.phrase(name, slot, words)}"
                    assert nlu.read_item(said, lexicon, phrases) == {"type": name, slot: value}, said
    assert several > 300


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
    for_all = re.compile(r"total|together|everything|whole (list|lot)|overall sum", re.IGNORECASE)
    assert [form for form in budget.texts if not for_all.search(form)] == []


def test_the_sentences_name_nothing_of_the_shop() -> None:
    """A word of theirs that is a type, a brand or a feature would be taken for one."""
    words = vocabulary()
    names = {*words.features, *(name for d in words.departments.values() for name in (*d.brands, *d.types))}
    texts = [form.literal for env in SPEAKING for _, form in every_form(env)]
    leads = [form for env in SPEAKING for some in ENVIRONMENTS[env].phrases.leads.values() for form in some]
    texts += [form.literal for form in leads]
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
