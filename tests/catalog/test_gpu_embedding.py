"""The script that embeds on a GPU runs in small on a CPU, with both architectures, and says what it ran on."""

import csv
import runpy
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).resolve().parents[2] / "experiments" / "gpu" / "embedding.py"


def test_the_gpu_script_runs_in_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--models", "tiny", "tiny-modern", "--texts", "300", "--queries", "30", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *given])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    with (tmp_path / "embedding.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"tiny", "tiny-modern"}
    for row in rows.values():
        assert row["weights"] == "random" and row["texts"] == "300" and row["dim"] == "32"
        assert float(row["titles_per_s"]) > 0 and float(row["recall_at_20"]) > 0.95
        if not torch.cuda.is_available():
            assert row["device"] == "cpu" and row["search"] == "torch top-k on cpu"
    capsys.readouterr()
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert "a second" not in capsys.readouterr().out  # a row that is there is not measured again


def test_top_k_in_pieces_is_top_k() -> None:
    script = runpy.run_path(str(SCRIPT))
    script["top"].__globals__["ROWS"] = 40
    vectors, queries = torch.randn(130, 8), torch.randn(5, 8)
    expected = (queries @ vectors.T).topk(20, dim=1).indices
    assert (script["top"](vectors, queries, 20) == expected).all()
