"""`--catalog`: every command takes a folder of real products or a number of generated ones, and refuses any other."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ecomlab import load_shop, make_task
from ecomlab.catalog.store import CatalogError
from ecomlab.catalog.support import UnsupportedError
from ecomlab.cli import app
from ecomlab.evaluation.transcripts import TranscriptError, read, read_header
from ecomlab.lab.play.choice import Choice, ShareKeyError, read_key, share_key
from ecomlab.lab.shops import catalog_named, record_of, recorded_shop, training_settings
from ecomlab.laws import certificate, laws
from ecomlab.training.config import ConfigError, TrainConfig
from ecomlab.training.run import CATALOG, _differs, _load_shop, _record
from ecomlab.training.run_transcripts import header_of

runner = CliRunner()


def evaluate(folder: Path, out: Path) -> Result:
    """Run a small evaluation on a catalog."""
    asked = ["eval", "reference", "--env", "POLICY", "--difficulty", "1", "--episodes", "2"]
    return runner.invoke(app, [*asked, "--catalog", str(folder), "--out", str(out)])


@pytest.fixture(scope="module")
def run(real_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation on the real catalog."""
    out = tmp_path_factory.mktemp("eval") / "run"
    assert evaluate(real_folder, out).exit_code == 0
    return out


def test_a_catalog_is_named_by_its_folder_or_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    assert catalog_named("mine") == str(tmp_path / "mine")
    assert [catalog_named(named) for named in ("2_000", 2000, None, "")] == [2000, 2000, 20_000, 20_000]
    assert catalog_named("-5") == -5  # which is refused as a number, and not looked for as a folder
    assert training_settings("2000") == {"catalog": "", "catalog_size": 2000}
    assert training_settings("mine") == {"catalog": str(tmp_path / "mine")}
    assert training_settings(None) == {}


def test_a_run_records_which_catalog_it_was_played_in_and_where(run: Path, real_folder: Path) -> None:
    known = read_header(run)["conditions"]["catalog"]
    assert known == {"folder": str(real_folder), "fingerprint": load_shop(real_folder).fingerprint}
    assert record_of(2_000, 1) == {"size": 2_000, "seed": 1}


def test_a_run_goes_on_and_is_replayed_where_its_catalog_was_moved(
    run: Path, real_folder: Path, tmp_path: Path
) -> None:
    moved = shutil.copytree(real_folder, tmp_path / "moved")
    assert evaluate(moved, run).exit_code == 0
    assert len(list(read(run, every=True))) == 2  # nothing was played again
    done = runner.invoke(app, ["eval", "--rescore", str(run), "--catalog", str(moved)])
    assert done.exit_code == 0 and "0 changed" in done.output


def test_a_missing_or_another_catalog_is_refused_by_both_names(
    run: Path, real_folder: Path, priceless_folder: Path, tmp_path: Path
) -> None:
    known = read_header(run)["conditions"]["catalog"]
    with pytest.raises(CatalogError, match=known["fingerprint"][:10]):
        recorded_shop({**known, "folder": str(tmp_path / "nowhere")})
    with pytest.raises(CatalogError, match=str(priceless_folder)):
        recorded_shop(known, str(priceless_folder))
    refused = evaluate(priceless_folder, run).exception
    assert isinstance(refused, TranscriptError) and "conditions.catalog.f" in str(refused)


@pytest.mark.parametrize("command", ["cascade", "view"])
def test_commands_on_transcripts_take_the_folder_of_their_catalog(
    command: str, run: Path, real_folder: Path, tmp_path: Path
) -> None:
    copy, moved = shutil.copytree(run, tmp_path / "run"), shutil.copytree(real_folder, tmp_path / "moved")
    file = copy / "transcripts.jsonl"
    file.write_text(file.read_text().replace(str(real_folder), str(tmp_path / "nowhere")))
    lost = runner.invoke(app, [command, str(copy)])
    assert "nowhere" in lost.output + str(lost.exception)
    found = runner.invoke(app, [command, str(copy), "--catalog", str(moved)])
    assert found.exit_code == 0 and "nowhere" not in found.output


def test_what_a_catalog_cannot_carry_is_refused_in_a_sentence_or_left_out_when_asked(
    priceless_folder: Path, tmp_path: Path
) -> None:
    shop = load_shop(priceless_folder)
    with pytest.raises(UnsupportedError, match="PD"):
        make_task("PD", 0, 0, shop)
    asked = ["eval", "reference", "--env", "POLICY,PD", "--difficulty", "0", "--episodes", "1"]
    asked += ["--catalog", str(priceless_folder), "--out", str(tmp_path / "run")]
    refused = runner.invoke(app, asked)
    assert isinstance(refused.exception, UnsupportedError) and "POLICY" in str(refused.exception)
    done = runner.invoke(app, [*asked, "--leave-out"])
    assert done.exit_code == 0 and "PD is left out" in done.output
    assert list(read_header(tmp_path / "run")["conditions"]["environments"]) == ["POLICY"]


def test_a_training_run_notes_its_catalog_and_goes_on_with_no_other(
    real_folder: Path, priceless_folder: Path, tmp_path: Path
) -> None:
    config = TrainConfig(catalog=str(real_folder))
    shop = _load_shop(tmp_path, config, leads=True)
    _record(tmp_path, config.to_json(), config, shop)
    assert json.loads((tmp_path / CATALOG).read_text())["fingerprint"] == shop.fingerprint
    known = header_of(config, shop.fingerprint)["conditions"]["catalog"]
    assert known == {"folder": str(real_folder), "fingerprint": shop.fingerprint}
    moved = TrainConfig(catalog=str(shutil.copytree(real_folder, tmp_path / "moved")))
    assert _differs(config.to_json(), moved.to_json()) == []
    assert _differs(config.to_json(), TrainConfig().to_json()) == ["catalog"]
    assert _load_shop(tmp_path, moved, leads=True).fingerprint == shop.fingerprint
    for folder in (priceless_folder, tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match=shop.fingerprint):
            _load_shop(tmp_path, TrainConfig(catalog=str(folder)), leads=True)
    with pytest.raises(ConfigError, match="PD"):
        _load_shop(tmp_path / "new", TrainConfig(catalog=str(priceless_folder), collection="PD"), leads=True)


def test_a_key_of_an_episode_in_a_folder_is_read_where_that_catalog_is(
    real_folder: Path, priceless_folder: Path
) -> None:
    made = Choice("CART", 2, 5, catalog=str(real_folder))
    key = share_key(made, made.task())
    assert str(real_folder.parent) not in key  # where it lies concerns nobody else
    assert read_key(key, str(real_folder))[0] == made
    for folder in (None, str(priceless_folder)):
        with pytest.raises(ShareKeyError, match="catalog"):
            read_key(key, folder)


def test_a_certificate_of_a_real_catalog_has_a_row_for_what_is_refused(priceless_folder: Path) -> None:
    cells = certificate.certify(["CART", "PD"], [0], 2, 1, str(priceless_folder), workers=1)
    rows = {row.env: row for row in cells}
    assert list(rows["PD"].refused.values()) == [2]
    assert rows["PD"].seeds == 0 and certificate.Row.from_json(rows["PD"].to_json()).refused
    assert json.loads(json.dumps(rows["PD"].to_json(), allow_nan=False))["solver"] is None
    assert list(laws.states(laws.Evidence(list(rows.values())))["FAIR"]) == ["CART"]
