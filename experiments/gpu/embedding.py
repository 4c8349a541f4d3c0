"""Titles embedded a second, and the nearest of them found, by models of MiniLM's and ModernBERT-base's size on a GPU.

    python experiments/gpu/embedding.py --out $OUT                                  # on a GPU: 2,000,000 titles each
    python experiments/gpu/embedding.py --models tiny --texts 500 --out /tmp/x      # anywhere: a check that it runs

Weights are random, which changes no time; nothing is downloaded. The tokenizer is trained on a sample of the titles; as
with a real one, nearly all titles are shorter than the 16 tokens to which texts are padded. Texts go through
`SentenceEmbedder`, as in a build. Search
is FAISS's on the GPU where this installation has it, else a torch top-k on the same device over vectors in half
precision, scored in float32; the table says which. Recall is against that. A model whose row is there already is not
run again.

Writes embedding.csv, a row a model, and machine.json.
"""

import argparse
import csv
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel

from ecomlab.catalog import Catalog, generate
from ecomlab.catalog.embed import on_grid
from ecomlab.catalog.embedders import MINILM_SHAPE, SentenceEmbedder, SentenceSettings
from ecomlab.files import replacing, write_json
from ecomlab.seeding import rng

SHARD, SAMPLE, K = 65_536, 20_000, 20
ROWS = 1 << 18
"""Vectors that are scored together."""
BATCHES = (1, 64)
"""Queries asked together."""
MODERNBERT_BASE = {
    "vocab_size": 50_368,
    "hidden_size": 768,
    "intermediate_size": 1_152,
    "num_hidden_layers": 22,
    "num_attention_heads": 12,
}
TINY = {
    "vocab_size": 600,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
MODELS: dict[str, tuple[str, dict[str, int]]] = {
    "minilm": ("mean", dict(MINILM_SHAPE)),
    "modernbert": ("cls", MODERNBERT_BASE),
    "tiny": ("mean", TINY),
    "tiny-modern": ("cls", TINY),
}
"""Pooling and sizes."""
Search = Callable[[torch.Tensor, int], torch.Tensor]
"""Numbers of the K nearest vectors of each query: (queries, K)."""


def titles(count: int) -> Iterator[list[str]]:
    """Compose the titles of generated products, a shard at a time."""
    catalog: Catalog = generate(max(count, 2_000))
    for start in range(0, count, SHARD):
        yield [catalog.title(row) for row in range(start, min(start + SHARD, count))]


def save_model(name: str, sample: list[str], folder: Path) -> Path:
    """Save a model with random weights and a tokenizer for these texts."""
    sizes = MODELS[name][1]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(
        sample,
        trainers.WordPieceTrainer(vocab_size=sizes["vocab_size"], special_tokens=marks, show_progress=False),
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    if "modern" in name:
        special = {
            "pad_token_id": 0,
            "cls_token_id": 2,
            "sep_token_id": 3,
            "bos_token_id": 2,
            "eos_token_id": 3,
        }
        ModernBertModel(ModernBertConfig(**sizes, **special)).save_pretrained(folder)
    else:
        BertModel(BertConfig(**sizes), add_pooling_layer=False).save_pretrained(folder)
    return folder


def search_on(vectors: torch.Tensor) -> tuple[str, Search]:
    """Choose how vectors are searched on their device: its name, and the search."""
    if vectors.is_cuda and hasattr(faiss, "StandardGpuResources"):
        index = faiss.GpuIndexFlatIP(faiss.StandardGpuResources(), vectors.shape[1])
        for start in range(0, len(vectors), ROWS):
            index.add(vectors[start : start + ROWS].float().cpu().numpy())

        def by_faiss(queries: torch.Tensor, k: int) -> torch.Tensor:
            return torch.from_numpy(index.search(queries.float().cpu().numpy(), k)[1])

        return "faiss on the GPU", by_faiss

    def by_torch(queries: torch.Tensor, k: int) -> torch.Tensor:
        return top(
            vectors, queries.float(), k
        )  # random weights put all titles close together: half scores tie

    return f"torch top-k on {vectors.device.type}", by_torch


def top(vectors: torch.Tensor, queries: torch.Tensor, k: int) -> torch.Tensor:
    """Find the `k` nearest vectors of each query by inner product, some rows at a time."""
    scores, numbers = [], []
    for start in range(0, len(vectors), ROWS):
        some = queries @ vectors[start : start + ROWS].to(queries.dtype).T
        best = some.topk(min(k, some.shape[1]), dim=1)
        scores.append(best.values)
        numbers.append(best.indices + start)
    best = torch.cat(scores, 1).topk(k, dim=1)
    return torch.cat(numbers, 1).gather(1, best.indices)


def milliseconds(search: Search, queries: torch.Tensor, batch: int) -> float:
    """Time searches of `batch` queries at once: the median of at most 30 of them, after three that are not counted."""
    spent = []
    for turn in range(33):
        some = queries[[(turn * batch + i) % len(queries) for i in range(batch)]]
        began = time.perf_counter()
        search(some, K).cpu()
        spent.append(1000 * (time.perf_counter() - began))
    return float(np.median(spent[3:]))


def recall(search: Search, vectors: torch.Tensor, queries: torch.Tensor) -> float:
    """Share of found vectors whose score in float32 reaches the K-th best one."""
    hits = 0
    for query in queries[:, None]:
        truth = top(vectors, query.float(), K)[0]
        cut = (vectors[truth].float() @ query[0].float()).min()
        found = search(query, K)[0].to(vectors.device)
        hits += int((vectors[found].float() @ query[0].float() >= cut).sum())
    return hits / (K * len(queries))


def measure(name: str, count: int, dtype: str, batch_tokens: int, queries: int) -> dict[str, Any]:
    """Embed `count` titles by a model with random weights, and search among them."""
    pooling, _ = MODELS[name]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sample = next(titles(min(count, SAMPLE)))
    with tempfile.TemporaryDirectory() as place:
        settings = SentenceSettings.model_validate(
            {
                "model": str(save_model(name, sample, Path(place))),
                "pooling": pooling,
                "dtype": dtype,
                "batch_tokens": batch_tokens,
            }
        )
        embedder = SentenceEmbedder(settings)
        embedder.encode(sample[:1_000])  # weights are loaded, kernels chosen
        vectors = torch.empty(count, embedder.dim, dtype=torch.float16, device=device)
        seconds = done = 0
        for shard in titles(count):
            began = time.perf_counter()
            made = embedder.encode(shard)
            seconds += time.perf_counter() - began
            vectors[done : done + len(made)] = torch.from_numpy(on_grid(made)).to(device, torch.float16)
            done += len(made)
            print(f"{name}: {done:,} of {count:,}, {done / seconds:,.0f} a second", flush=True)
        chosen = rng("gpu embedding", "queries").choice(count, min(queries, count), replace=False)
        asked = vectors[torch.from_numpy(np.sort(chosen)).to(device)]
        kind, search = search_on(vectors)
        tokens = np.mean([len(ids) for ids in embedder.token_ids(sample[:2_000])])
        return {
            "model": name,
            "weights": "random",
            "parameters": sum(one.numel() for one in embedder._model.parameters()),
            "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
            "dtype": dtype,
            "batch_tokens": batch_tokens,
            "texts": count,
            "tokens_per_title": round(float(tokens), 1),
            "titles_per_s": round(count / seconds, 1),
            "embed_s": round(seconds, 1),
            "dim": embedder.dim,
            "search": kind,
            **{f"search_ms_of_{batch}": round(milliseconds(search, asked, batch), 3) for batch in BATCHES},
            "recall_at_20": round(recall(search, vectors, asked[:100]), 4),
            "peak_mb": round(torch.cuda.max_memory_allocated() / 1e6) if device == "cuda" else "",
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["minilm", "modernbert"])
    parser.add_argument("--texts", type=int, default=2_000_000)
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--batch-tokens", type=int, default=65_536)
    parser.add_argument("--queries", type=int, default=200)
    asked = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    dtype = asked.dtype or ("bfloat16" if on_gpu else "float32")
    file = asked.out / "embedding.csv"
    rows: list[dict[str, Any]] = []
    if file.is_file():
        with file.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened))
    for name in asked.models:
        same = {
            "model": name,
            "texts": str(asked.texts),
            "dtype": dtype,
            "batch_tokens": str(asked.batch_tokens),
        }
        if any(row.items() >= same.items() for row in rows):
            continue
        rows.append(
            {
                key: str(value)
                for key, value in measure(name, asked.texts, dtype, asked.batch_tokens, asked.queries).items()
            }
        )
        print(rows[-1], flush=True)
        with replacing(file) as draft, draft.open("w", encoding="utf-8", newline="") as opened:
            table = csv.DictWriter(opened, list(rows[-1]), lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    machine = {
        "card": torch.cuda.get_device_name() if on_gpu else "no GPU",
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "faiss": faiss.__version__,
    }
    write_json(asked.out / "machine.json", machine)
    print(json.dumps(machine))


if __name__ == "__main__":
    main()
