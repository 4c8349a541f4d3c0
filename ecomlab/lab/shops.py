"""The catalog that a command, a notebook or a record means: a folder of real products, or generated ones by number."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop, load_shop
from ecomlab.catalog.store import CatalogError
from ecomlab.catalog.support import check_supported, unsupported
from ecomlab.lab.paths import project_root, resolve

PRODUCTS = 20_000
"""Generated products where no catalog is named."""
SHORT = 10
"""Characters of a fingerprint in a message."""


def catalog_named(text: str | int | None, size: int = PRODUCTS) -> str | int:
    """Read what `--catalog` or a parameter names: the path of a folder, a number of generated products, or "" or None
    for `size` of them.

    A relative path starts at the working directory, or at the project where the folder is not there.
    """
    if text is None or text == "":
        return size
    if isinstance(text, int) or text.removeprefix("-").replace("_", "").isdecimal():
        return int(text)  # also one below 0, a mistake that is told as such
    here = Path(text).expanduser().absolute()
    return str(here if here.exists() else resolve(text))


def training_settings(catalog: str | int | None) -> dict[str, Any]:
    """Return the settings of a training run on a catalog that an option or a parameter names; none for None."""
    if catalog is None:
        return {}
    named = catalog_named(catalog)
    return {"catalog": "", "catalog_size": named} if isinstance(named, int) else {"catalog": named}


def record_of(catalog: str | int, seed: int = 0) -> dict[str, Any]:
    """Say how a shop is loaded, as records of runs have it beside its fingerprint: folders within the project relative
    to it."""
    if isinstance(catalog, int):
        return {"size": catalog, "seed": seed}
    folder, root = Path(catalog), project_root()
    return {"folder": (folder.relative_to(root) if folder.is_relative_to(root) else folder).as_posix()}


def recorded_shop(record: Mapping[str, Any], now: str | None = None) -> Shop:
    """Load the shop of a record: {"size", "seed"} or {"folder"}, with "fingerprint". `now` names the folder where the
    catalog is today, if it is another.

    Raises CatalogError, which names both, for a folder that is not there any more and for one with another catalog.
    Generated products are loaded whatever their fingerprint is now: who replays says what has changed.
    """
    if "folder" not in record and not now:
        return load_shop(int(record["size"]), int(record["seed"]))
    known, place = str(record.get("fingerprint", "")), catalog_named(now or record["folder"])
    was = f"this was made with the catalog {known[:SHORT]} in {record.get('folder', record.get('size'))}"
    try:
        shop = load_shop(place)
    except CatalogError as error:
        raise CatalogError(f"{was}: {error}; if it has moved, name its folder with --catalog") from None
    if known != shop.fingerprint:
        raise CatalogError(
            f"{was}, and {place} holds {shop.fingerprint[:SHORT]}; name the first one's folder with --catalog, or make "
            "this again with the second"
        )
    return shop


def environments_on(shop: Shop, envs: Sequence[str], leave_out: bool = False) -> tuple[list[str], list[str]]:
    """Choose the environments that can be played in a shop: (those, a sentence for each that is left out).

    Raises UnsupportedError for one that cannot, unless they are to be left out, and where none can.
    """
    off = unsupported(shop.catalog)
    able = [env for env in envs if env not in off]
    if not leave_out or not able:
        check_supported(shop.catalog, envs)
    return able, [f"{env} is left out: {off[env]}" for env in envs if env in off]
