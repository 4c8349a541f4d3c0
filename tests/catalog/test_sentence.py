"""Sentence models: a text's vector depends on the text alone, no code of a model runs, what is missing is said."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_model import small_model
from tokenizers import Tokenizer

from ecomlab.assets import AssetError, intact, named
from ecomlab.catalog import build_shop, generate, load_shop
from ecomlab.catalog.embedders import (
    MINILM,
    SentenceEmbedder,
    SentenceSettings,
    embedder_named,
    usual_embedder,
)

TEXTS = ["red lamp", "a lamp", "dog " * 30, "", "wool cardigan in red, size XL, made of wool", "lamp red"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small model that knows the words of TEXTS."""
    return small_model(tmp_path_factory.mktemp("model"), TEXTS)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_vector_depends_on_the_text_alone(pooling: str, model: Path) -> None:
    embedder = SentenceEmbedder(SentenceSettings(model=str(model), pooling=pooling, batch_tokens=512))  # type: ignore[arg-type]
    alone = np.concatenate([embedder.encode([text]) for text in TEXTS])
    assert alone.shape == (6, 32) and np.allclose(
        np.linalg.norm(alone, axis=1), [1, 1, 1, 0, 1, 1], atol=1e-5
    )
    assert np.allclose(embedder.encode(TEXTS * 9)[-6:], alone, atol=1e-6)
    assert np.allclose(embedder.encode(TEXTS[::-1])[::-1], alone, atol=1e-6)
    assert not np.allclose(alone[0], alone[1], atol=1e-3)


def test_mean_pooling_is_over_the_tokens_of_the_text(model: Path) -> None:
    embedder = embedder_named(str(model))
    network = transformers.BertModel.from_pretrained(model, add_pooling_layer=False).eval()
    ids = Tokenizer.from_file(str(model / "tokenizer.json")).encode("red lamp").ids
    with torch.inference_mode():
        states = network(input_ids=torch.tensor([ids])).last_hidden_state[0]
    mean = states.mean(0) / states.mean(0).norm()
    assert np.allclose(embedder.encode(["red lamp"])[0], mean.numpy(), atol=1e-5)


def drop(weights: dict[str, torch.Tensor]) -> None:
    del weights["encoder.layer.1.output.dense.weight"]


def blow_up(weights: dict[str, torch.Tensor]) -> None:
    weights["embeddings.LayerNorm.weight"] *= 1e38


@pytest.mark.parametrize(("change", "why"), [(drop, "encoder.layer.1"), (blow_up, "float32")])
def test_missing_weights_are_not_made_up_and_a_vector_without_numbers_is_refused(
    change: Callable[[dict[str, torch.Tensor]], None], why: str, model: Path, tmp_path: Path
) -> None:
    shutil.copytree(model, tmp_path / "torn")
    weights = load_file(model / "model.safetensors")
    change(weights)
    save_file(weights, tmp_path / "torn" / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=why):
        embedder_named(str(tmp_path / "torn")).encode(["red lamp"])


def test_a_folder_is_remembered_from_anywhere(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    assert embedder_named(f"./{model.name}").name == str(model.resolve())


def test_the_fingerprint_is_of_weights_and_use(model: Path, tmp_path: Path) -> None:
    settings = SentenceSettings(model=str(model))
    fingerprint = SentenceEmbedder(settings).fingerprint
    bigger = settings.model_copy(update={"batch_tokens": 8_192})
    assert SentenceEmbedder(bigger).fingerprint == fingerprint
    other = settings.model_copy(update={"pooling": "cls"})
    assert SentenceEmbedder(other).fingerprint != fingerprint
    for file in model.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert embedder_named(str(tmp_path)).fingerprint == fingerprint
    weights = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    assert embedder_named(str(tmp_path)).fingerprint != fingerprint


def test_a_catalog_remembers_its_model(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "embedder.toml"
    file.write_text(f'model = "{model}"\npooling = "cls"\nmax_tokens = 16\n', "utf-8")
    embedder = embedder_named(str(file))
    manifest = build_shop(generate(200), tmp_path / "shop", embedder)
    shop = load_shop(tmp_path / "shop")
    assert shop.engine.embedder.name == embedder.name and manifest.index.digest
    query, again = shop.catalog.title(5), load_shop(tmp_path / "shop")
    assert shop.engine.search(query, top_k=3) == again.engine.search(query, top_k=3)
    lexical = build_shop(generate(200), tmp_path / "lexical")
    assert not lexical.index.digest  # equal on every machine


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("minilmm", "'minilm'"),
        ('{"model": "a/b", "pooling": "max"}', "pooling"),
        ('{"model": "a/b", "trust_remote_code": true}', "trust_remote_code"),
    ],
)
def test_an_embedder_that_cannot_be_is_refused(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        embedder_named(name)


def test_a_model_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="nowhere"):
        _ = embedder_named(str(tmp_path / "nowhere")).fingerprint
    monkeypatch.setenv("ECOMLAB_CACHE", str(tmp_path))
    with pytest.raises(AssetError, match="assets get minilm"):
        embedder_named("minilm").encode(["x"])


@pytest.mark.skipif(not intact(named("minilm")), reason="`ecomlab assets get minilm` fetches the weights")
def test_minilm_knows_what_words_mean() -> None:
    embedder = embedder_named("minilm")
    lamp, light, food = embedder.encode(["a red lamp", "crimson light for the desk", "dog food"])
    assert embedder.name == MINILM and embedder.dim == 384
    assert lamp @ light > 2 * lamp @ food


def test_notebooks_take_minilm_where_its_weights_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECOMLAB_CACHE", str(tmp_path))
    for asset in ("minilm", "minilm-tokenizer"):  # without both it embeds nothing
        assert usual_embedder().name == "lexical"
        named(asset).path.parent.mkdir(parents=True, exist_ok=True)
        named(asset).path.write_bytes(b"")
    assert usual_embedder().name == MINILM and usual_embedder("lexical").name == "lexical"
