"""From a product file to a shop in one command."""

import csv
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from ecomlab import ENVIRONMENTS
from ecomlab.catalog import CatalogError, load_shop
from ecomlab.catalog import build as build_module
from ecomlab.lab.catalogs import build


def write(file: Path, count: int) -> Path:
    """Write lamps of three brands, each with a model of its own."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        table = csv.writer(opened)
        table.writerow(["id", "title", "brand", "price", "category", "rating"])
        for row in range(count):
            brand = ["Lumo", "Acme", "Koss"][row % 3]
            title = f"{brand} LX{row} Bright LED Desk Lamp, Black, 12W"
            table.writerow([row, title, brand, f"${10 + row}.99", "Home > Desk Lamps", 3.5 + row % 3 / 2])
    return file


def made(source: Path, out: Path, embedder: str = "lexical") -> str:
    console = Console(record=True, width=200)
    build(str(source), out, None, True, "train", console, embedder)
    return console.export_text()


def test_a_product_file_becomes_a_shop(tmp_path: Path) -> None:
    made(write(tmp_path / "lamps.csv", 40), tmp_path / "shop")
    shop = load_shop(tmp_path / "shop")
    (best,) = shop.engine.search("koss lx8 desk lamp", top_k=1)
    assert shop.catalog.titles is not None and shop.catalog.titles[best].startswith("Koss LX8 ")
    before = shop.fingerprint
    made(write(tmp_path / "lamps.csv", 50), tmp_path / "shop")
    assert load_shop(tmp_path / "shop").catalog.size == 50 and shop.fingerprint == before


def test_a_build_says_what_is_not_in_the_shop_and_what_cannot_be_played(tmp_path: Path) -> None:
    source = write(tmp_path / "lamps.csv", 40)
    with source.open("a", encoding="utf-8") as file:
        file.write("40,Lumo LX40 Bright LED Desk Lamp,Lumo,,Home > Desk Lamps,4\n")
    said = made(source, tmp_path / "shop")
    assert "1 of 41 products: no price (1)" in said
    off = {line.partition(" is off: ")[0] for line in said.splitlines() if " is off: " in line}
    assert off == set(ENVIRONMENTS) - {"PD"}


def test_what_makes_no_shop_is_an_error_that_keeps_the_products(tmp_path: Path) -> None:
    rows = [
        "Product Name,Vendor,Size",
        "Acme Desk Lamp,Acme,\x1b]52;c;cm0=\x07S",
        "Bolt Desk Lamp,Bolt,M",
        ",Bolt,M",
    ]
    (tmp_path / "lamps.csv").write_text("\n".join(rows) + "\n")
    console = Console(record=True, width=200)
    with pytest.raises(ValueError, match="lamps.csv"):
        build(str(tmp_path / "lamps.csv"), tmp_path / "shop", None, True, "train", console)
    assert (tmp_path / "shop" / "products.json").is_file()
    with pytest.raises(CatalogError):
        load_shop(tmp_path / "shop")
    assert "\x1b" not in console.export_text(), "a value of the file that a terminal would obey"


def test_an_embedder_that_is_not_there_is_said_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'minilmm'"):
        made(write(tmp_path / "lamps.csv", 40), tmp_path / "shop", embedder="minilmm")
    assert not (tmp_path / "shop").exists()


# -- several processes ----

COMMAND = """
import os, signal, time
from ecomlab.catalog import build
from ecomlab.cli import main
build.SHARD, embed_rows, calls = 8, build.embed_rows, []
def embed(*args):
    calls.append(args)
    if "KILL" in os.environ and len(calls) == 2:
        if os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(float(os.environ["KILL"]))
    return embed_rows(*args)
build.embed_rows = embed
main()
"""
"""The command with shards of 8 texts. With KILL process 1 is killed at its second, and process 0 waits KILL seconds."""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 40 lamps, a model that knows their words, COMMAND, and the shop that one process builds of them."""
    from sentence_model import small_model

    lamps = write(tmp_path / "lamps.csv", 40)
    (tmp_path / "model").mkdir()
    small_model(tmp_path / "model", lamps.read_text("utf-8").replace(",", " ").split())
    (tmp_path / "command.py").write_text(COMMAND)
    monkeypatch.setattr(build_module, "SHARD", 8)
    assert build_here(tmp_path, "alone") == 5
    return tmp_path


def build_here(files: Path, out: str) -> int:
    """Build the shop `out` in this process; return how many shards it has embedded."""
    return made(files / "lamps.csv", files / out, str(files / "model")).count("embedded ")


def arguments(files: Path, out: str) -> list[str]:
    """COMMAND and its arguments to build the shop `out`."""
    command = ["catalog", "build", "lamps.csv", out, "--yes", "--embedder", str(files / "model")]
    return [str(files / "command.py"), *command]


def launch(files: Path, out: str, kill: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Build the shop `out` in two processes of torchrun's."""
    launcher = "-m torch.distributed.run --standalone --nproc-per-node 2".split()
    return subprocess.run(
        [sys.executable, *launcher, *arguments(files, out)],
        env=os.environ | kill,
        cwd=files,
        capture_output=True,
        text=True,
        timeout=900,
    )


def start_two(folder: Path, command: list[str], kill: dict[str, str]) -> list[tuple[int, str, str]]:
    """Run `command` in two processes without a launcher, which would end the second with the first; return the exit
    status and the output of each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    started = [
        subprocess.Popen(
            [sys.executable, *command],
            env=os.environ | group | kill | {"RANK": rank, "LOCAL_RANK": rank},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    said = [process.communicate(timeout=900) for process in started]
    return [(process.returncode, *texts) for process, texts in zip(started, said, strict=True)]


def manifest(files: Path, out: str) -> bytes:
    return (files / out / "manifest.json").read_bytes()


@pytest.mark.slow
def test_two_processes_build_what_one_builds(files: Path) -> None:
    done = launch(files, "together", {})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("embedded ") == 3  # of five
    assert manifest(files, "together") == manifest(files, "alone")


@pytest.mark.slow
def test_a_build_of_two_processes_that_is_killed_goes_on_with_one(files: Path) -> None:
    done = launch(files, "killed", {"KILL": "600"})
    assert done.returncode and "SIGKILL" in done.stderr, done.stderr
    assert not (files / "killed" / "manifest.json").exists()
    kept = {path.stem for path in (files / "killed").glob("*/shards/*.npy")}
    assert "00001" in kept and "00003" not in kept
    assert build_here(files, "killed") == 5 - len(kept)
    assert manifest(files, "killed") == manifest(files, "alone")


@pytest.mark.slow
def test_what_a_killed_process_leaves_the_first_embeds(files: Path) -> None:
    first, second = start_two(files, arguments(files, "left"), {"KILL": "0"})
    assert second[0] == -signal.SIGKILL and first[0] == 0, first
    assert first[1].count("embedded ") == 4  # all but the one that the other had finished
    assert manifest(files, "left") == manifest(files, "alone")


@pytest.mark.slow
def test_where_the_first_process_fails_the_other_ends_with_a_sentence(tmp_path: Path) -> None:
    command = "-m ecomlab catalog build nowhere.csv shop --yes".split()
    first, second = start_two(tmp_path, command, {})
    assert (first[0], second[0]) == (2, 2) and "nowhere.csv" in first[2], (first, second)
    assert "another process" in second[2]
    assert "Traceback" not in first[2] + second[2]
