"""A certificate that was ended goes on: neither a row nor the search for leaks of an environment is computed twice."""

from pathlib import Path
from typing import Any

import pytest

from ecomlab.laws import certificate
from ecomlab.laws.counterfactual import Comparison
from ecomlab.laws.leaks import Leak


def test_the_search_for_leaks_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def found(env: str) -> tuple[list[Leak], list[Comparison]]:
        return [Leak(env, "cart_add.product_id", 3, 9, 0.5, 0.4, 0.6)], [Comparison(env, 4, 7, ["a title"])]

    def look(env: str, *_: Any) -> tuple[list[Leak], list[Comparison]]:
        looked.append(env)
        if len(looked) == 2:
            raise KeyboardInterrupt
        return found(env)

    monkeypatch.setattr(certificate, "_leaks", look)
    envs, kept = ["PD", "CART", "STATUS"], tmp_path / "a.kept.jsonl"
    kept.write_text('{"key": "x", "row": {}}\n{"key": "cut sh')
    with pytest.raises(KeyboardInterrupt):
        certificate.find_leaks(envs, 5, 1, 1_000, kept)
    leaks, compared = certificate.find_leaks(envs, 5, 1, 1_000, kept)
    assert looked == ["PD", "CART", "CART", "STATUS"]
    assert leaks == [leak for env in envs for leak in found(env)[0]]
    assert compared == [one for env in envs for one in found(env)[1]]
    certificate.find_leaks(envs, 6, 1, 1_000, kept)  # of another number of tasks
    assert looked[4:] == envs
