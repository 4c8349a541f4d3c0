"""Names of a real catalog, many of which are ordinary words: when a customer takes a word for one."""

from pathlib import Path

import pytest
from ingested import built

from ecomlab import ENVIRONMENTS, Shop
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.catalog.real import catalog_of
from ecomlab.customer import nlu
from ecomlab.customer.reading.reading import read
from ecomlab.customer.reading.vocabulary import Vocabulary, vocabulary_of

CART = ENVIRONMENTS["CART"].phrases
LAMPS, SPEAKERS = ("Opteka", "Standard"), ("Comet", "Beyond")
"""Short names of two types: "Standard" and "Beyond" are words of a shop's talk."""


def lexicon_from(rows: list[str], folder: Path) -> Lexicon:
    """Ingest products, of which each is a title, a brand and a price."""
    (folder / "names.csv").write_text("\n".join(["title,brand,price", *rows]) + "\n")
    return Lexicon(catalog_of(built(folder / "names.csv", folder / "out").products))


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> Lexicon:
    rows = [
        f"Maker{'ab'[i % 2]} {names[i // 8]} {kind},Maker{'ab'[i % 2]},{10 + i}"
        for kind, names in (("Desk Lamp", LAMPS), ("Speaker", SPEAKERS))
        for i in range(16)
    ]
    return lexicon_from(rows, tmp_path_factory.mktemp("names"))


@pytest.fixture(scope="module")
def vocabulary(lexicon: Lexicon) -> Vocabulary:
    """What a message to a customer who wants a lamp may name."""
    return vocabulary_of(CART, lexicon, ["Lamp"])


def names_in(text: str, vocabulary: Vocabulary, slot: str) -> list[str]:
    return [said.value for said in read(text, vocabulary).mentions if slot in said.slots]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("is it the opteka one", ["Opteka"]),  # lamps are called so, and nothing else is
        ("Is it the Standard one?", ["Standard"]),
        ("do you want a standard one", []),
        ("Is it the Comet one?", ["Comet"]),  # of a speaker, but written as a name
        ("do you want a comet one", []),
        ("Is it the Beyond one?", []),  # neither a lamp's name nor a word of its own
    ],
)
def test_an_ordinary_word_is_a_name_only_where_it_is_written_as_one(
    text: str, names: list[str], vocabulary: Vocabulary
) -> None:
    assert names_in(text, vocabulary, "feature") == names


@pytest.mark.parametrize("types", [["HDMI Cable", "Cable"], ["Cable", "HDMI Cable"]])
def test_a_type_whose_name_ends_another_keeps_it(types: list[str], tmp_path: Path) -> None:
    names = [("Opteka", "HDMI Cable"), ("Comet", "Cable")]
    rows = [
        f"Maker{'ab'[i % 2]} {of} {kind},Maker{'ab'[i % 2]},{i + 9}" for of, kind in names for i in range(16)
    ]
    lexicon = lexicon_from(rows, tmp_path)
    asked = read("Which brand should the cable be?", vocabulary_of(CART, lexicon, types)).questions
    assert [(one.slot, one.item) for one in asked] == [("brand", types.index("Cable"))]


def test_the_generated_shop_has_one_list_of_names(big_shop: Shop) -> None:
    """None of its names is an ordinary word, so all are heard in whatever way they are written."""
    lexicon, brand = lexicon_of(big_shop.catalog), big_shop.catalog.brands[-1]
    vocabulary = vocabulary_of(CART, lexicon, [next(iter(lexicon.types))])
    for written in (str.lower, str.title):
        assert names_in(f"Is it by {written(brand)}?", vocabulary, "brand") == [brand]


def test_a_number_in_words_is_no_misspelling(tmp_path: Path) -> None:
    """ "I'd like four CA-5402 Speakers" was heard as the brand FORD."""
    rows = [f"{maker} X{i}Q Speaker,{maker},{10 + i}" for maker in ("FORD", "Ten") for i in range(12)]
    lexicon = lexicon_from(rows, tmp_path)
    assert lexicon.nearest("brand", "fourd") == ("FORD", pytest.approx(88.9, abs=0.1))
    assert lexicon.nearest("brand", "four") is None
    assert lexicon.nearest("brand", "Ten") == ("Ten", 100)


@pytest.mark.parametrize(("said", "slots"), [("one", {"quantity": 1}), ("a ONE", {"feature": "ONE"})])
def test_a_number_is_a_name_only_where_it_is_written_as_one(
    said: str, slots: dict[str, object], tmp_path: Path
) -> None:
    """ "Let's leave it at one Carrying Case." was heard as the case called ONE."""
    rows = [
        f"Maker{'ab'[i % 2]} {('ONE', 'Remix')[i // 8]} Carrying Case,Maker{'ab'[i % 2]},{i + 9}"
        for i in range(16)
    ]
    lexicon = lexicon_from(rows, tmp_path)
    kind = next(iter(lexicon.types))
    heard = nlu.read_message(f"I'd like {said} {kind}.", CART, lexicon)
    assert [mention.slots for mention in heard] == [slots]
