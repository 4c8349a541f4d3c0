"""Names of a real catalog, many of which are ordinary words: when a customer takes a word for one."""

from pathlib import Path

import pytest
from ingested import built

from ecomlab import ENVIRONMENTS, Shop
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.catalog.real import catalog_of
from ecomlab.customer import nlu
from ecomlab.customer.hearing import reader_of
from ecomlab.customer.questions import Reader

LAMPS, SPEAKERS = ("Opteka", "Classic"), ("Comet", "Beyond")
"""Short names of two types: "Classic" and "Beyond" are words of a shop's talk."""


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> Lexicon:
    folder = tmp_path_factory.mktemp("names")
    lines = ["title,brand,price"]
    for kind, names in (("Desk Lamp", LAMPS), ("Speaker", SPEAKERS)):
        lines += [f"Maker{'ab'[i % 2]} {names[i // 8]} {kind},Maker{'ab'[i % 2]},{10 + i}" for i in range(16)]
    (folder / "names.csv").write_text("\n".join(lines) + "\n")
    return Lexicon(catalog_of(built(folder / "names.csv", folder / "out").products))


@pytest.fixture(scope="module")
def reader(lexicon: Lexicon) -> Reader:
    """Reads messages to a customer who wants a lamp."""
    return reader_of(ENVIRONMENTS["CART"].phrases, lexicon, ["Lamp"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("is it the opteka one", ["Opteka"]),  # lamps are called so, and nothing else is
        ("Is it the Classic one?", ["Classic"]),
        ("do you want a classic one", []),
        ("Is it the Comet one?", ["Comet"]),  # of a speaker, but written as a name
        ("do you want a comet one", []),
        ("Is it the Beyond one?", []),  # neither a lamp's name nor a word of its own
    ],
)
def test_an_ordinary_word_is_a_name_only_where_it_is_written_as_one(
    text: str, names: list[str], reader: Reader
) -> None:
    questions = reader.read(text).questions
    assert [value for one in questions if one.slot == "feature" for value in one.values] == names


@pytest.mark.parametrize("types", [["HDMI Cable", "Cable"], ["Cable", "HDMI Cable"]])
def test_a_type_whose_name_ends_another_keeps_it(types: list[str]) -> None:
    reader = Reader(["brand"], [[name, f"{name}s"] for name in types], {}, {})
    asked = reader.read("Which brand should the cable be?").questions
    assert [(one.slot, one.item) for one in asked] == [("brand", types.index("Cable"))]


def test_the_generated_shop_has_one_list_of_names(big_shop: Shop) -> None:
    """None of its names is an ordinary word, so all are heard in whatever way they are written."""
    lexicon = lexicon_of(big_shop.catalog)
    kind = next(iter(lexicon.types))
    for written in (str.lower, str.title):
        brand = big_shop.catalog.brands[-1]
        asked = reader_of(ENVIRONMENTS["CART"].phrases, lexicon, [kind]).read(f"Is it by {written(brand)}?")
        assert [one.values for one in asked.questions] == [(brand,)]


def test_a_number_in_words_is_no_misspelling(tmp_path: Path) -> None:
    """ "I'd like four CA-5402 Speakers" was heard as the brand FORD."""
    rows = [f"{maker} X{i}Q Speaker,{maker},{10 + i}" for maker in ("FORD", "Ten") for i in range(12)]
    (tmp_path / "names.csv").write_text("\n".join(["title,brand,price", *rows]) + "\n")
    lexicon = Lexicon(catalog_of(built(tmp_path / "names.csv", tmp_path / "out").products))
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
    (tmp_path / "names.csv").write_text("\n".join(["title,brand,price", *rows]) + "\n")
    lexicon = Lexicon(catalog_of(built(tmp_path / "names.csv", tmp_path / "out").products))
    kind = next(iter(lexicon.types))
    heard = nlu.read_message(f"I'd like {said} {kind}.", ENVIRONMENTS["CART"].phrases, lexicon)
    assert [mention.slots for mention in heard] == [slots]
