"""Policies by name: sources come by entry points or are registered, and `models` knows none of them."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ecomlab import Shop
from ecomlab.models import load
from ecomlab.models.policy import Policy, PolicyError
from ecomlab.starters.policy import STARTERS

ROOT = Path(__file__).resolve().parents[2]
FRESH = """
import sys
from ecomlab.models.load import load_policy, made_for_environments, sources
assert not [m for m in sys.modules if m.startswith("ecomlab.starters")]
assert "torch" not in sys.modules
assert len(sources()) == 1 and "CART" in made_for_environments("base")
"""


class Parrots:
    """Policies of somebody else's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "polly").mkdir()
        (folder / "polly" / "made_for.json").write_text('{"kind": "parrot", "environments": {"CART": 1}}')

    def reads(self, made_for: Mapping[str, Any]) -> bool:
        return made_for.get("kind") == "parrot"

    def load(self, folder: Path, shop: Shop, envs: Sequence[str]) -> Policy:
        return Policy(folder.name, None, {"envs": list(envs)})  # type: ignore[arg-type]


@pytest.fixture
def parrots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parrots:
    monkeypatch.setattr(load, "_sources", list(load.sources()))
    source = Parrots(tmp_path)
    load.register(source)
    return source


def test_an_entry_point_is_enough_to_find_the_starters(tmp_path: Path) -> None:
    """A notebook imports `load_policy` alone. What pyproject.toml declares, in a process that imports no starters."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["entry-points"][load.GROUP]
    info = tmp_path / "ecomlab_test-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ecomlab-test\nVersion: 0\n")
    lines = [f"[{load.GROUP}]", *(f"{name} = {where}" for name, where in declared.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    code = f"import sys; sys.path.append({str(tmp_path)!r})\n{FRESH}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]


def test_registered_policies_are_found_by_name_and_by_folder(parrots: Parrots, shop: Shop) -> None:
    for name in ("polly", str(parrots.folder / "polly")):
        assert not load.is_ordinary(name) and load.made_for_environments(name) == ["CART"]
        assert load.load_policy(name, shop, ["CART"]).model == "polly"
    with pytest.raises(PolicyError, match="no starter 'poly'; did you mean 'polly'"):
        load.load_policy("poly", shop, ["CART"])
    before = load.sources()
    load.register(parrots)
    load.register(STARTERS)
    assert load.sources() == before, "twice is once"


def test_a_folder_that_no_source_reads_is_refused(parrots: Parrots, shop: Shop) -> None:
    for text in ('{"kind": "crow"}', "{"):
        (parrots.folder / "polly" / "made_for.json").write_text(text)
        with pytest.raises(PolicyError, match="does not hold a readable policy: its made_for.json"):
            load.load_policy("polly", shop, ["CART"])


def test_a_runs_folder_does_not_hide_the_shipped_policy_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: Shop
) -> None:
    """`ecomlab eval novice --out novice`, twice."""
    (tmp_path / "novice").mkdir()
    (tmp_path / "novice" / "transcripts.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    assert "CART" in load.load_policy("novice", shop, ["CART"]).made_for["environments"]
    with pytest.raises(PolicyError, match="no policy is in"):
        load.load_policy("./novice/../novice", shop, ["CART"])


def test_adapters_without_their_model_are_told_as_such(tmp_path: Path, shop: Shop) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(PolicyError, match="holds adapters without their model; merge them"):
        load.load_policy(str(tmp_path), shop, ["CART"])
