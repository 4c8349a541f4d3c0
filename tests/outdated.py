"""Committed tables against what is shipped: by which starters, environments and catalogs they were made."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ecomlab.catalog import load_shop
from ecomlab.catalog.store import CatalogError
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.lab.paths import resolve
from ecomlab.lab.provenance import made_with


def outdated(record: Mapping[str, Any]) -> Iterator[str]:
    """List what a record was made with and is different now: "adaptive-seed0: CART: was ..., is ...".

    `record` is a run's, or that of a sweep, as `provenance.merged` gives it.
    """
    for name, own in (record.get("runs") or {"record": {}}).items():
        full = joined(record.get("common", record), own)
        then, parameters = full.get("made_with"), full.get("parameters", {})
        if not then:
            yield f"{name}: made_with: absent"
            continue
        starter, place = parameters["starter"], parameters.get("catalog") or parameters["catalog_size"]
        now = made_with(starter, [env for env in then["environments"] if env in ENVIRONMENTS])
        pairs = {"catalog": (full.get("catalog"), catalog(place, parameters.get("catalog_seed", 0)))}
        pairs[f"starter {starter}"] = then["starter"], now["starter"]
        pairs |= {env: (was, now["environments"].get(env)) for env, was in then["environments"].items()}
        for what, (was, here) in pairs.items():
            if was != here:
                yield f"{name}: {what}: was {was}, is {here or 'absent'}"


@cache
def catalog(place: str | int, seed: int) -> str:
    """Return the fingerprint of a catalog; "" for a folder that does not hold one."""
    try:
        return load_shop(resolve(place) if isinstance(place, str) else place, seed).fingerprint
    except CatalogError:
        return ""


def joined(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `provenance.merged` for one run."""
    found = dict(common)
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = joined(found[key], value) if both else value
    return found
