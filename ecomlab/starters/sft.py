"""Supervised fine-tuning on demonstrations: Muon for the matrices, AdamW for the rest; resumable."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ecomlab.seeding import rng
from ecomlab.starters.demonstrations import Demonstration


def imitate(
    model: Any,
    batches: Sequence[Sequence[Demonstration]],
    muon_lr: float,
    adamw_lr: float,
    cooldown: float,
    on_progress: Callable[[str], None] = lambda _: None,
    kept: "Checkpoint | None" = None,
    *,
    decay: float = 0.0,
) -> None:
    """Train `model` by cross-entropy on the demonstrators' tokens alone, one step per batch.

    Both learning rates fall to zero over the last share `cooldown` of the steps. Resumes from `kept`.
    """
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    muon = torch.optim.Muon(matrices, lr=muon_lr, weight_decay=decay)
    adamw = torch.optim.AdamW(others, lr=adamw_lr, weight_decay=0.0, betas=(0.9, 0.98))
    parts = {"model": model, "muon": muon, "adamw": adamw}
    model.train()
    first, started, tokens = kept.load(parts) if kept else 0, time.perf_counter(), 0
    for step in range(first, len(batches)):
        batch = batches[step]
        left = (len(batches) - step) / max(1.0, cooldown * len(batches))
        for optimizer, rate in ((muon, muon_lr), (adamw, adamw_lr)):
            optimizer.param_groups[0]["lr"] = rate * min(1.0, left)
        loss = imitation_loss(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in (muon, adamw):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        tokens += sum(len(d.ids) for d in batch)
        if step % 100 == 0 or step == len(batches) - 1:
            seconds = time.perf_counter() - started
            pace = 1e6 * seconds / tokens
            on_progress(
                f"step {step} of {len(batches)}: loss {loss.item():.3f}, {seconds:.0f} s, {pace:.0f} s a million tokens"
            )
        if kept:
            kept.save(step + 1, parts)
    model.eval()


class Checkpoint:
    """The state of a run, saved in a folder every `EVERY` seconds; `recipe` identifies the run's recipe."""

    EVERY = 120.0

    def __init__(self, folder: Path, recipe: str) -> None:
        self.path, self.recipe = folder / "warmstart.pt", recipe
        self._saved = time.perf_counter()

    def load(self, parts: Mapping[str, Any]) -> int:
        """Restore the saved state and return the next step. Raises ValueError if it is of another recipe."""
        if not self.path.exists():
            return 0
        kept = torch.load(self.path, weights_only=True)
        if kept["recipe"] != self.recipe:
            raise ValueError(f"{self.path} is of another recipe; delete it, or choose another --work")
        for name, part in parts.items():
            part.load_state_dict(kept[name])
        return int(kept["step"])

    def save(self, step: int, parts: Mapping[str, Any]) -> None:
        """Save the state before `step`, if the last one saved is old enough."""
        if time.perf_counter() - self._saved < self.EVERY:
            return
        state = {name: part.state_dict() for name, part in parts.items()}
        new = self.path.with_suffix(".new")
        torch.save({**state, "recipe": self.recipe, "step": step}, new)
        new.replace(self.path)
        self._saved = time.perf_counter()


def imitation_loss(model: Any, batch: Sequence[Demonstration]) -> Tensor:
    """Compute mean cross-entropy over the demonstrators' tokens; only these pass through the output layer."""
    ids_BL = pad_sequence([torch.tensor(d.ids) for d in batch], batch_first=True).to(model.device)
    spoken_BL = pad_sequence([torch.tensor(d.mask).bool() for d in batch], batch_first=True).to(model.device)
    hidden = model.get_decoder()(input_ids=ids_BL[:, :-1], use_cache=False).last_hidden_state
    spoken = spoken_BL[:, 1:]
    logits = model.get_output_embeddings()(hidden[spoken])
    return torch.nn.functional.cross_entropy(logits, ids_BL[:, 1:][spoken])


def batches_of(
    demonstrations: Sequence[Demonstration], size: int, tokens: int, key: Sequence[Any]
) -> Iterator[list[Demonstration]]:
    """Yield batches of up to `size` tokens and similar lengths, epoch after epoch, up to `tokens` in all."""
    lengths = np.array([len(d.ids) for d in demonstrations])
    given = epoch = 0
    while given < tokens:
        random = rng("batches", *key, epoch)
        order = np.argsort(lengths + random.uniform(0, 16, len(lengths)), kind="stable")
        batches: list[list[int]] = [[]]
        longest = 0
        for i in order:
            longest = max(longest, int(lengths[i]))
            if batches[-1] and (len(batches[-1]) + 1) * longest > size:
                batches.append([])
                longest = int(lengths[i])
            batches[-1].append(int(i))
        for b in random.permutation(len(batches)):
            if given >= tokens:
                return
            given += int(lengths[batches[b]].sum())
            yield [demonstrations[i] for i in batches[b]]
        epoch += 1
