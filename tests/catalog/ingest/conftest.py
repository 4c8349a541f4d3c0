"""Catalogs built once a module: the messy file and the shop's export."""

import pytest
from ingested import MESSY, VARIANTS, Built, built


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("messy")
    (folder / "products.csv").write_bytes(MESSY)
    return built(folder / "products.csv", folder / "out")


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("variants")
    (folder / "export.csv").write_text(VARIANTS)
    return built(folder / "export.csv", folder / "out")
