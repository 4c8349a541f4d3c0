"""Real catalogs: what is sold of a product table, what tasks are about, and that they can be played."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
from ingested import built, priceless, shop_export

from ecomlab import ENVIRONMENTS, make_task, play
from ecomlab.catalog import Catalog, LexicalEmbedder, SearchEngine, Shop
from ecomlab.catalog.ingest import types
from ecomlab.catalog.ingest.types import is_speakable
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.catalog.products import Products, open_products
from ecomlab.catalog.real import FEWEST, catalog_of, left_out, unused
from ecomlab.catalog.schema import NO_OPTION
from ecomlab.catalog.support import limits, of_names, of_stock, unsupported
from ecomlab.customer.nlu import read_item, read_opening
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import finish
from ecomlab.lab.catalogs import _carried
from ecomlab.slots import LIMITS, PRICE, RATING
from ecomlab.task import Task
from ecomlab.wishes import AnyBut, OneOf
from ecomlab.world.cart import constraints_of
from ecomlab.world.plain import AtFirst, plain

NAMES = "Harbor Juniper Meadow Granite Willow Summit Prairie Thistle Falcon Lagoon Tundra Voyage".split()


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> Products:
    folder = tmp_path_factory.mktemp("export")
    (folder / "export.csv").write_text(shop_export())
    return built(folder / "export.csv", folder / "out").products


@pytest.fixture(scope="module")
def catalog(products: Products) -> Catalog:
    return catalog_of(products)


@pytest.fixture(scope="module")
def shop(catalog: Catalog) -> Shop:
    embedder = LexicalEmbedder()
    return Shop(catalog, SearchEngine(catalog, embedder))


def catalog_from(lines: list[str], folder: Path) -> Catalog:
    folder.mkdir(exist_ok=True)
    (folder / "a.csv").write_text("\n".join(lines) + "\n")
    built(folder / "a.csv", folder / "out")
    return catalog_of(open_products(folder / "out"))


def test_products_come_in_the_variants_of_their_source(catalog: Catalog) -> None:
    assert catalog.size == 168 and len(catalog.drawable_types) == 7
    shirt = catalog.types[catalog.type_codes["T-Shirt"]]
    assert (shirt.option.name, set(shirt.option.values)) == ("size", {"S", "M", "L"})
    assert {a.name for a in shirt.attributes} == {"color", "material"}
    assert shirt.department == "Clothing"
    assert lexicon_of(catalog).phrase("T-Shirt", "attr:color", "Black or Red") == "in black or red"


def test_a_product_has_a_short_name_and_the_title_of_its_source(catalog: Catalog) -> None:
    row = catalog.type_rows("Tent")[0]
    record = catalog.record(row)
    assert record["title"] == catalog.title(row) == f"{catalog.brand(row)} {catalog.feature(row)} Tent"
    assert record["listing"] == catalog.listing(row)
    assert str(catalog.brand(row)) in str(catalog.listing(row))


@pytest.mark.parametrize("env", list(ENVIRONMENTS))
def test_every_environment_is_won_on_a_real_catalog(env: str, shop: Shop) -> None:
    assert unsupported(shop.catalog) == {}
    for d in (0, 6):
        trajectory = play(ENVIRONMENTS[env].reference_player(shop), make_task(env, d, 1, shop), shop)
        assert trajectory.score.correct, trajectory.score.why


def test_the_catalog_is_the_same_in_another_process(catalog: Catalog, products: Products) -> None:
    again = Catalog.from_columns(catalog.vocabulary, catalog.columns(), catalog.titles)
    assert again.fingerprint == catalog.fingerprint == catalog_of(products).fingerprint
    assert again.drawable_types == catalog.drawable_types


def test_one_product_with_variants_leaves_the_others_of_its_type_on_sale(tmp_path: Path) -> None:
    lines = [
        "sku,title,brand,price,color",
        *(f"{i},Maker X{i}Q Tripod,Maker,{10 + i},Black" for i in range(15)),
    ]
    lines += [f"{i},Maker Y{i}Q Tripod,Maker,{10 + i},White" for i in range(15, 20)]
    found = catalog_from([*lines, "0,Maker X0Q Tripod,Maker,12,White"], tmp_path)
    assert found.size == 20 and found.types[0].option == NO_OPTION and not found.option_bits.any()
    assert [attribute.name for attribute in found.types[0].attributes] == ["color"]


def test_without_prices_and_ratings_nothing_is_said_about_them(tmp_path: Path) -> None:
    bare = catalog_from(priceless().splitlines(), tmp_path)
    assert not any(map(bare.has, (PRICE, RATING)))
    assert (bare.record(0)["price"], bare.record(0)["rating"]) == (None, None)
    assert set(unsupported(bare)) == {"PD", "BUNDLE", "SUB", "JOURNEY"}
    assert len(limits(bare)) == 2
    assert bare.types[0].option == NO_OPTION
    shop = Shop(bare, SearchEngine(bare, LexicalEmbedder()))
    for env in ("CART", "RETURN", "STATUS", "POLICY"):
        for d, seed in ((0, 2), (8, 2), (12, 3)):
            task = make_task(env, d, seed, shop)
            assert not {name for _, name in task.goal.slots} & {"price", "rating"}
            made = play(ENVIRONMENTS[env].reference_player(shop), task, shop)
            assert made.score.correct and "2147483" not in str(made.messages), (env, d, made.score.why)


def with_numbers(rated: int, priced: int, folder: Path) -> Products:
    """Forty products of two types, of which the first so many have a rating or a price."""
    _, *titles = priceless().splitlines()
    lines = [
        f"{line},{4.5 if at < rated else ''},{10 + at if at < priced else ''}"
        for at, line in enumerate(titles)
    ]
    (folder / "a.csv").write_text("\n".join(["title,brand,rating,price", *lines]) + "\n")
    return built(folder / "a.csv", folder / "out").products


@pytest.mark.parametrize(
    ("rated", "priced", "bounds"), [(1, 40, {"price"}), (19, 40, {"price"}), (40, 3, {"rating"})]
)
def test_a_number_that_few_products_have_costs_no_others_their_place(
    rated: int, priced: int, bounds: set[str], tmp_path: Path
) -> None:
    """With one rated product of 300 no shop was made: the others lacked a rating."""
    products = with_numbers(rated, priced, tmp_path)
    catalog = catalog_of(products)
    assert (catalog.size, len(catalog.drawable_types), left_out(products)) == (40, 2, {})
    assert {limit.name for limit in LIMITS if catalog.has(limit)} == {"days", *bounds}
    assert unused(products) == ({"rating": rated} if rated < 40 else {"price": priced})
    assert products.rows["rating_tenths"].null_count == 40 - rated  # the product table keeps them
    said = "\n".join(_carried(catalog, products))
    name = "rating" if rated < 40 else "price"
    assert f"a {name} is known of {min(rated, priced)} of 40 products, too few: none is used" in said
    assert "customers set no limit" in said and f"no product has a {name}: customers" not in said


@pytest.mark.parametrize(
    ("rated", "priced", "left"), [(20, 40, "no rating"), (40, 4, "no price"), (39, 40, "no rating")]
)
def test_products_without_what_enough_others_have_are_left_out(
    rated: int, priced: int, left: str, tmp_path: Path
) -> None:
    assert {name: round(40 * share) for name, share in FEWEST.items()} == {
        "rating_tenths": 20,
        "price_cents": 4,
    }
    products = with_numbers(rated, priced, tmp_path)
    assert (left_out(products), unused(products)) == ({left: 40 - min(rated, priced)}, {})


def test_real_products_are_named_as_people_write_them(tmp_path: Path) -> None:
    """Brand first, with the article that is heard, no shouting; nobody asks for a Furniture."""
    lines = ["title,brand,price"]
    for i, maker in enumerate(["HP", "Maker"] * 10):
        lines += [f"{maker} ELECTRIFIED X{i}Q Cover Beige,{maker},{10 + i}"]
        lines += [f"{maker} Y{i}Q Tripod,{maker},{10 + i}"]
    bare = catalog_from(lines, tmp_path)
    assert is_speakable("Tripod") and not is_speakable("Furniture")
    assert {str(bare.feature(row)).partition("-")[0] for row in bare.type_rows("Cover")} == {"Electrified"}
    shop = Shop(bare, SearchEngine(bare, LexicalEmbedder()))
    said = "".join(make_task("CART", d, seed, shop).opening for d in (0, 2) for seed in range(20))
    assert " an HP " in said and " a HP " not in said
    assert " HP Electrified-X" in said and "Q HP" not in said


def test_a_list_for_any_department_has_a_purpose_that_people_name() -> None:
    """Nobody shops for "my Printers and Ink project"."""
    departments = {kind.department for kind in types.names().kinds.values()}
    assert departments <= set(ENVIRONMENTS["BUNDLE"].phrases.data["projects"])


@pytest.mark.parametrize(
    ("kind", "others", "reasons"),
    [
        # "The Wilson Cell Phone Mount" begins like a cell phone
        ("Cell Phone", ["Wilson Cell Phone Holder,Wilson,9,"], {"no short name": 1}),
        # "the Green Tripod" would be one of that colour
        ("Tripod", ["Green Y1Q Tripod,Green,9,Black"], {"no brand": 1}),
        (
            "Tripod",
            ["Maker Z77Q Tripod,Maker,,", "Maker Tripod,Maker,3,", "Q9X9 Tripod,???,4,"],
            {"no price": 1, "no short name": 1, "no brand": 1},
        ),
    ],
)
def test_what_cannot_be_sold_is_counted_by_reason(
    kind: str, others: list[str], reasons: dict[str, int], tmp_path: Path
) -> None:
    sold = [f"Maker X{i}Q {kind},Maker,{10 + i},Green" for i in range(15)]
    assert catalog_from(["title,brand,price,color", *sold, *others], tmp_path).size == 15
    assert left_out(open_products(tmp_path / "out")) == reasons


def test_a_product_comes_in_its_own_variants(tmp_path: Path) -> None:
    """Products that come in others, in one, or in a rare one besides stay on sale."""
    ranges = {**dict.fromkeys(range(8), "SML"), **dict.fromkeys(range(8, 14), "ML"), 14: "M", 15: "MLX"}
    lines = ["sku,title,brand,price,size"]
    lines += [f"{i},Maker X{i}Q Tripod,Maker,{10 + i},{size}" for i, own in ranges.items() for size in own]
    found = catalog_from(lines, tmp_path)
    assert (found.size, found.types[0].option.values) == (16, ("L", "M", "S"))
    sets = Counter(found.options(row) for row in range(16))
    assert sets == {("L", "M", "S"): 8, ("L", "M"): 7, (): 1}


def test_an_option_belongs_to_a_type(products: Products) -> None:
    """Mugs in "size Blue": one name was kept for the whole shop. A type has the option of most of its products."""
    import pyarrow as pa

    kinds = products.rows["type"].to_pylist()
    own = ["Size"] * len(kinds)
    tents = [row for row, kind in enumerate(kinds) if kind == "Tent"]
    for row in tents:
        own[row] = "Strap" if row in tents[:2] else "Volume"
    at = products.rows.column_names.index("option")
    rows = products.rows.set_column(at, "option", pa.array(own))
    found = catalog_of(Products(rows, products.facts))
    options = {kind.name: kind.option.name for kind in found.types}
    assert options.pop("Tent") == "volume" and set(options.values()) == {"size"}
    bits = found.option_bits[list(found.type_rows("Tent"))]
    assert found.size == catalog_of(products).size and (bits == 0).sum() == 2


def shop_of(
    folder: Path, stock: Callable[[str, int], object], brands: Sequence[str], names: int = 12
) -> Shop:
    """A shop of mugs, scarves and jackets, thirty of each, in sizes 6 to 9."""
    said = "Alder Birch Cedar Dogwood Elm Fir Gorse Hazel Ivy Juniper Kelp Larch".split()
    lines = ["parent,sku,title,brand,price,stock,size,category"]
    for kind in ("Mug", "Scarf", "Jacket"):
        for i in range(30):
            one = f"{said[i % names]} {kind},{brands[i % len(brands)]},{10 + i},{stock(kind, i)}"
            sizes = (6, 7, 8, 9)[i % 2 : 3 + i % 2] if kind == "Jacket" else ("",)
            lines += [f"{kind}{i},{kind}{i}-{size},{one},{size},{kind}s" for size in sizes]
    catalog = catalog_from(lines, folder)
    return Shop(catalog, SearchEngine(catalog, LexicalEmbedder()))


def solved(shop: Shop, env: str, levels: Sequence[int], seeds: int) -> Iterator[Task]:
    """Play tasks by the oracle and both reference players; each of them must be right."""
    for d, seed in product(levels, range(seeds)):
        task = make_task(env, d, seed, shop)
        yield task
        made = ENVIRONMENTS[env].reference_player
        for player in (None, made(shop), made(shop, courteous=True)):
            episode = Episode(task, shop)
            score = finish(player or ENVIRONMENTS[env].oracle(episode), episode).score
            assert score.correct, (env, d, seed, score.why)


@pytest.mark.parametrize(
    ("stock", "names"),
    [
        (lambda kind, i: 3, 12),
        (lambda kind, i: 1 if kind == "Mug" else 40, 12),
        (lambda kind, i: 0 if kind == "Scarf" else 40 * (i > 15), 12),
        (lambda kind, i: 0 if i < 18 else 40 * (i % 2) or 3, 1),  # the first pages are sold out
    ],
)
def test_every_task_is_drawn_of_the_stock_there_is_and_solved(
    stock: Callable[[str, int], int], names: int, tmp_path: Path
) -> None:
    """Such shops ended in "high <= 0" and "load a larger shop", and players gave up at the first page."""
    shop = shop_of(tmp_path, stock, ("Maker", "Acme", "Norwood") if names > 1 else ("Maker",), names)
    units, off = shop.catalog.stock, unsupported(shop.catalog)
    assert not {"CART", "PD", "BUNDLE"} & off.keys()
    for env in ("CART", "PD", "BUNDLE"):
        for task in solved(shop, env, (0, 4, 8), 4):
            for item in task.goal.items if env == "CART" else ():
                slots = plain(task.goal, AtFirst(shop, task.world)).of(item)
                rows = shop.catalog.select(constraints_of(slots["type"], slots))
                assert units[rows].max() >= slots.get("quantity", 1)


def test_what_is_sold_out_is_said_at_build(tmp_path: Path) -> None:
    shop = shop_of(tmp_path, lambda kind, i: 0 if kind == "Scarf" else 2, ("Maker", "Acme"))
    in_stock, quantities = of_stock(shop.catalog)
    assert "2 of them" in in_stock and "Scarf (0)" in in_stock and "Jacket, Mug" in quantities
    left = shop_of(tmp_path / "mugs", lambda kind, i: 9 * (kind == "Mug"), ("Maker", "Acme")).catalog
    off = unsupported(left)
    assert {env for env, why in off.items() if "in stock" in why} == {"CART", "SUB", "BUNDLE"}
    assert "PD" not in off
    assert {"PD"} <= unsupported(shop_of(tmp_path / "none", lambda kind, i: 0, ("Maker",)).catalog).keys()


def test_customers_of_one_brand_do_not_name_it(tmp_path: Path) -> None:
    """ "A Scarf by Fernside" fitted all: the first visit was right at d = 0."""
    shop = shop_of(tmp_path, lambda kind, i: 40, ("Maker",))
    tasks = [make_task("CART", d, seed, shop) for d in (0, 2, 6) for seed in range(10)]
    assert {"brand"}.isdisjoint(name for task in tasks for _, name in task.goal.slots)
    assert all((0, "feature") in task.goal.slots for task in tasks if task.difficulty == 0)
    (line,) = of_names(shop.catalog)
    assert "Maker is the brand of 100%" in line
    few = shop_of(tmp_path / "few", lambda kind, i: 40, ("Maker", "Acme"), names=3)
    assert any("NOT GAMEABLE" in line for line in of_names(few.catalog))


def test_days_are_no_size(tmp_path: Path) -> None:
    lexicon = lexicon_of(shop_of(tmp_path, lambda kind, i: 40, ("Maker",)).catalog)
    phrases = ENVIRONMENTS["CART"].phrases
    for words, slots in {
        "a jacket delivered within 7 days": {"days": 7},
        "a jacket in size 8, with delivery within 7 days": {"option": "8", "days": 7},
    }.items():
        (mention,) = read_opening(f"I'd like {words}.", phrases, lexicon)
        assert mention.slots == slots


def test_a_table_of_nothing_that_can_be_sold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"1 no brand.*a mapping file names"):
        catalog_from(["title,price,brand", "Some Blue Lamp,3,"], tmp_path)


def test_a_file_without_brands_is_a_shop_of_its_own(tmp_path: Path) -> None:
    """As a craftsman's export, and one that a word of the name is an attribute of: "Oak & Owl" is not of oak."""
    own = catalog_from(
        ["title,price", *(f"Some {name} Lamp,3{at}" for at, name in enumerate(NAMES))], tmp_path
    )
    assert own.brands == ("Own-Brand",)
    (tmp_path / "named").mkdir()
    lines = [f"Oak & Owl {name} Lamp,3{at},Oak & Owl" for at, name in enumerate(NAMES)]
    owned = catalog_from(["title,price,brand", *lines], tmp_path / "named")
    assert owned.brands == ("Oak-Owl",) and not owned.attr_values


def test_sizes_in_numbers_are_listed(tmp_path: Path) -> None:
    header = "Handle,Title,Vendor,Type,Option1 Name,Option1 Value,Variant SKU,Variant Price"
    lines = [
        f"{name},{name} Ring,Bo,Rings,Size,{size},{name}{size},30" for name, size in product(NAMES, (5, 6, 7))
    ]
    lexicon = lexicon_of(catalog_from([header, *lines], tmp_path))
    for words, sizes in (
        ("but not in size 5 or 7", AnyBut(("5", "7"))),
        ("in size 6 or 7", OneOf(("6", "7"))),
    ):
        read = read_item(f"a ring {words}", lexicon, ENVIRONMENTS["CART"].phrases)
        assert sizes in read.values() and "quantity" not in read


@pytest.mark.parametrize("words", ["3 Star-Kids raincoats", "three Star-Kids raincoats"])
def test_a_name_that_begins_as_a_rating_is_a_name(words: str, tmp_path: Path) -> None:
    lines = [f"Star {name} Raincoat,3{at},Bo,Raincoats" for at, name in enumerate(("Kids", *NAMES))]
    lexicon = lexicon_of(catalog_from(["title,price,brand,category", *lines], tmp_path))
    assert read_item(words, lexicon, ENVIRONMENTS["CART"].phrases) == {
        "type": "Raincoat", "feature": "Star-Kids", "quantity": 3,
    }  # fmt: skip


def test_what_has_no_type_is_not_among_those_with_most_products(tmp_path: Path) -> None:
    lines = [f"Alder Zzyzx {i},Fern,5" for i in range(20)] + [
        f"Fern Juno{i} Desk Lamp,Fern,9" for i in range(5)
    ]
    with pytest.raises(ValueError, match=r"5 \(Lamp\).* 20 products") as refused:
        catalog_from(["title,brand,price", *lines], tmp_path)
    assert "Other Product" not in str(refused.value)
