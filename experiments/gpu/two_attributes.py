"""Does choosing a row by two attributes come, and when? A 5-20M parameter Qwen3 from the laptop policy's own recipe.

    python experiments/gpu/two_attributes.py --out $OUT                # on a GPU: three sizes, curves, a table
    python experiments/gpu/two_attributes.py --steps 20 --sizes laptop # anywhere: a check that it runs

The laptop policy cannot pick the one row that matches brand *and* feature among shuffled look-alikes (FACTS §2). Each
size is trained on the recipe's demonstrations mixed with lookups: an opening, a search result of four rows of the type
(both right, brand right, feature right, neither) in random order, and the purchase of the right one. Measured every
`--every` steps on held-out tasks: the share of lookups in which the right row's id is the likeliest (chance 1/4).
Writes two_attributes.csv, two_attributes.png and machine.json; resumes from its own checkpoints if killed.
"""

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ecomlab import Shop, load_shop, make_task
from ecomlab.collector import EVALUATION_SEEDS, TRAINING_SEEDS
from ecomlab.customer.wishes import PLENTY
from ecomlab.episode import Episode
from ecomlab.seeding import rng
from ecomlab.train.demonstrations import Demonstration
from ecomlab.train.renderer import ShortRenderer
from ecomlab.train.warmstart import Phase, Recipe, make_tokenizer, play_demonstrations

SIZES = {  # hidden, layers, heads, feed-forward
    "laptop": (96, 2, 3, 256),
    "5M": (256, 6, 8, 704),
    "20M": (448, 8, 14, 1216),
}
HEAD = 32
ROWS = 4


def build(size: str, renderer: ShortRenderer, seed: int) -> Any:
    """A random-initialised Qwen3 of that size for the laptop policy's tokenizer."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    hidden, layers, heads, feed_forward = SIZES[size]
    tokenizer = renderer.tokenizer
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=hidden,
            intermediate_size=feed_forward,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            head_dim=HEAD,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )


def lookup(shop: Shop, renderer: ShortRenderer, seed: int) -> Demonstration | None:
    """One conversation that ends in choosing a row by brand and feature; None where the shop has no look-alikes."""
    catalog = shop.catalog
    task = make_task("CART", 2, seed, shop, {"p_missing": 0, "p_oos": 0, "p_switch": 0, "eps_rank": 0})
    slots = dict(task.truth["items"][0])
    pool = np.asarray(catalog.type_rows(slots["type"]))
    pool = pool[catalog.stock[pool] >= PLENTY]
    brand = catalog.brand_code[pool] == catalog.brands.index(slots["brand"])
    feature = catalog.feature_code[pool] == catalog.features.index(slots["feature"])
    random = rng("lookup", seed)
    rows = []
    for kind in (brand & feature, brand & ~feature, ~brand & feature, ~brand & ~feature):
        if not kind.any():
            return None
        rows.append(int(random.choice(pool[kind])))
    records = [catalog.record(rows[i]) for i in random.permutation(ROWS)]
    right = catalog.ids[rows[0]]
    episode = Episode(task, shop)
    dialogue = renderer.dialogue()
    query = f"{slots['brand']} {slots['feature']} {slots['type']}"
    ids = dialogue.open(episode.messages, episode.tools)
    said = renderer.encode(dialogue.write("", [("catalog_search", {"query": query})]))
    content = json.dumps({"results": records, "page": 1, "pages": 1})
    heard = dialogue.follow(
        [{"role": "tool", "tool_call_id": "c1", "name": "catalog_search", "content": content}]
    )
    answer = renderer.encode(dialogue.write("", [("cart_add", {"product_id": right})]))
    mask = [0] * len(ids) + [1] * len(said) + [0] * len(heard) + [1] * len(answer)
    return Demonstration([*ids, *said, *heard, *answer], mask, True, 2)


def loss_and_choice(
    model: Any, batch: list[Demonstration], aliases: torch.Tensor, device: str
) -> tuple[Any, Any]:
    """(mean cross-entropy on spoken tokens, whether each conversation's last alias is the likeliest of all aliases)."""
    longest = max(len(d.ids) for d in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    spoken = torch.zeros(len(batch), longest, dtype=torch.bool)
    for b, d in enumerate(batch):
        ids[b, : len(d.ids)] = torch.tensor(d.ids)
        spoken[b, : len(d.ids)] = torch.tensor(d.mask, dtype=torch.bool)
    ids, spoken = ids.to(device), spoken.to(device)
    logits = model(input_ids=ids[:, :-1]).logits.float()
    targets, where = ids[:, 1:], spoken[:, 1:]
    loss = torch.nn.functional.cross_entropy(logits[where], targets[where])
    is_alias = torch.isin(targets, aliases) & where
    last = is_alias.float().cumsum(1).argmax(1)
    rows = torch.arange(len(batch), device=device)
    likeliest = aliases[logits[rows, last][:, aliases].argmax(1)]
    return loss, likeliest == targets[rows, last]


def run(
    size: str, shop: Shop, renderer: ShortRenderer, data: dict[str, list[Demonstration]], args: Any
) -> list[dict[str, Any]]:
    """Train one size; a row per evaluation."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = renderer.tokenizer
    from ecomlab.train.renderer import ALIASES

    aliases = torch.tensor([tokenizer.convert_tokens_to_ids(alias) for alias in ALIASES], device=device)
    model = build(size, renderer, args.seed).to(device)
    parameters = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0)
    saved = args.out / f"{size}.pt"
    rows: list[dict[str, Any]] = []
    first, seconds = 0, 0.0
    if saved.exists():
        state = torch.load(saved, map_location=device, weights_only=False)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        rows, first, seconds = state["rows"], state["step"], state["seconds"]
    began = time.perf_counter() - seconds
    for step in range(first, args.steps + 1):
        if step % args.every == 0 or step == args.steps:
            model.eval()
            with torch.no_grad():
                parts = [
                    loss_and_choice(model, data["held out"][i : i + 64], aliases, device)[1]
                    for i in range(0, len(data["held out"]), 64)
                ]
            right = float(torch.cat(parts).float().mean())
            seconds = time.perf_counter() - began
            rows.append(
                {
                    "size": size,
                    "parameters": parameters,
                    "step": step,
                    "right": right,
                    "seconds": round(seconds, 1),
                }
            )
            print(rows[-1], flush=True)
            model.train()
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "rows": rows,
                "step": step,
                "seconds": seconds,
            }
            torch.save(state, saved)
        random = rng("batch", args.seed, step)
        picked = [
            data[kind][int(i)]
            for kind in ("lookups", "shopping")
            for i in random.integers(len(data[kind]), size=args.batch // 2)
        ]
        for group in optimizer.param_groups:
            group["lr"] = args.lr * min(1.0, (step + 1) / 200)
        loss, _ = loss_and_choice(model, picked, aliases, device)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return rows


def draw(rows: list[dict[str, Any]], out: Path) -> None:
    """The curves."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5, 3.2), layout="constrained")
    for size in dict.fromkeys(row["size"] for row in rows):
        mine = [row for row in rows if row["size"] == size]
        axis.plot(
            [r["step"] for r in mine],
            [r["right"] for r in mine],
            label=f"{mine[0]['parameters'] / 1e6:.1f}M parameters",
        )
    axis.axhline(1 / ROWS, color="grey", linestyle=":", label="chance")
    axis.set(xlabel="step", ylabel="right row chosen, held out", ylim=(0, 1.02))
    axis.legend(frameon=False)
    figure.savefig(out / "two_attributes.png", dpi=160)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("experiments/runs/two_attributes"))
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--every", type=int, default=250)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--lookups", type=int, default=40_000)
    parser.add_argument("--shopping", type=int, default=8_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    shop = load_shop()
    recipe = Recipe(phases=(Phase((0, 1, 2, 3, 4), 0.0, 0, args.shopping),))
    renderer = ShortRenderer(make_tokenizer(shop, recipe))
    import ecomlab.train.renderer as module

    module.ROWS_SHOWN = ROWS  # all four rows are seen
    spans = {"lookups": (TRAINING_SEEDS.start, args.lookups), "held out": (EVALUATION_SEEDS.start, 1_024)}
    data = {
        name: [d for i in range(count) if (d := lookup(shop, renderer, start + i)) is not None]
        for name, (start, count) in spans.items()
    }
    data["shopping"] = list(play_demonstrations(shop, renderer, recipe, 0))
    print({name: len(part) for name, part in data.items()}, flush=True)
    rows = [row for size in args.sizes.split(",") for row in run(size, shop, renderer, data, args)]
    with (args.out / "two_attributes.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, args.out)
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    machine = {
        "card": card,
        "torch": torch.__version__,
        "arguments": {k: str(v) for k, v in vars(args).items()},
    }
    (args.out / "machine.json").write_text(json.dumps(machine, indent=1) + "\n")


if __name__ == "__main__":
    main()
