"""Looking up ids by words: the copy drills of the starters' recipe, with and without initial induction heads.

    python experiments/starters/lookup.py          # ten minutes on one core; writes lookup.csv

A row per 100 steps of the recipe's first phase: the share of ids behind known words, in held-out drills, that the model
finds most likely, and the share that guessing among a drill's ids would find.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ecomlab import load_shop
from ecomlab.seeding import rng
from ecomlab.starters import recipe as recipes
from ecomlab.starters import tiny_qwen3
from ecomlab.starters.compact_renderer import ShortRenderer
from ecomlab.starters.copy_drills import ASKED, copy_drill
from ecomlab.starters.demonstrations import Demonstration
from ecomlab.starters.id_aliases import ALIASES
from ecomlab.starters.induction_init import give_induction
from ecomlab.starters.sft import batches_of, imitate

HERE = Path(__file__).resolve().parent
HELD_OUT = 100


def found(model: torch.nn.Module, drills: list[Demonstration]) -> float:
    """Compute the share of the requested ids that the model finds most likely."""
    right = 0
    for d in drills:
        with torch.no_grad():
            likeliest = model(torch.tensor([d.ids])).logits[0, :-1].argmax(-1)
        sampled = torch.tensor(d.mask[1:]).nonzero().flatten()
        ids = sampled[-ASKED - 1 : -1]  # the last one is the end of the turn
        right += int((likeliest[ids] == torch.tensor(d.ids[1:])[ids]).sum())
    return right / (ASKED * len(drills))


def main() -> None:
    torch.set_num_threads(1)
    shop, recipe, rows = load_shop(), recipes.RECIPES["novice"], []
    renderer = ShortRenderer(recipes.make_tokenizer(shop, recipe))
    held_out = [
        Demonstration.of(copy_drill(shop.catalog, rng("held out", i)), renderer, True, recipes.COPY_DRILL)
        for i in range(HELD_OUT)
    ]
    played = list(recipes.play_demonstrations(shop, renderer, recipe, 0))
    batches = list(batches_of(played, recipe.tokens_per_batch, recipe.phases[0].tokens, (recipe.seed, 0)))
    aliases = {renderer.encode(alias)[0] for alias in ALIASES}
    chance = round(float(np.mean([1 / len(aliases & set(d.ids)) for d in held_out])), 4)
    for name in ("novice", "base"):
        size = recipes.RECIPES[name].size
        for given in (False, True):
            tokens = len(renderer.tokenizer)
            model = tiny_qwen3.build_model(tokens, renderer.pad_id, renderer.stop_ids[0], recipe.seed, size)
            if given:
                give_induction(model, recipe.seed)
            head = {"size": name, "induction": given}

            def note(line: str, head: dict[str, Any] = head, model: torch.nn.Module = model) -> None:
                share, step = round(found(model, held_out), 4), int(line.split()[1])
                rows.append({**head, "step": step, "found": share, "chance": chance})
                print(rows[-1], flush=True)

            imitate(model, batches, recipe.muon_lr, recipe.adamw_lr, recipe.cooldown, note)
    pd.DataFrame(rows).to_csv(HERE / "lookup.csv", index=False)


if __name__ == "__main__":
    main()
