"""Supervised fine-tuning of an ordinary chat model on played episodes, in the very tokens that it is later sampled in.

    python experiments/smollm2/sft.py MODEL OUT --minutes 10             # all eight, on a GPU if there is one
    python experiments/smollm2/sft.py MODEL OUT --env CART --steps 3     # a check

Demonstrations are those of the starters (natural questions, no mistakes), played and tokenised while it trains: each is
seen once. Only what the policy says is in the loss. Killed and started again, it goes on from the last checkpoint.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import IterableDataset
from transformers import Trainer, TrainerCallback, TrainingArguments

from ecomlab import ENVIRONMENTS, Episode, Shop, load_shop, make_task
from ecomlab.models.qwen3 import load_chat_policy
from ecomlab.models.renderer import Renderer
from ecomlab.seeding import rng
from ecomlab.starters.demonstrations import demonstrator

IGNORED = -100
"""Label of a token that is not in the loss."""


class Played(IterableDataset):  # type: ignore[type-arg]
    """Demonstrations without end, each drawn by its number."""

    def __init__(
        self, envs: list[str], levels: list[int], longest: int, shop: Shop, renderer: Renderer
    ) -> None:
        self.envs, self.levels, self.longest, self.shop, self.renderer = envs, levels, longest, shop, renderer

    def __iter__(self) -> Iterator[dict[str, list[int]]]:
        number = 0
        while True:
            random = rng("smollm2 sft", number)
            env, d = str(random.choice(self.envs)), int(random.choice(self.levels))
            row = demonstration(env, d, int(random.integers(2**31)), self.shop, self.renderer)
            if len(row["input_ids"]) <= self.longest:
                yield row
            number += 1


def demonstration(env: str, d: int, seed: int, shop: Shop, renderer: Renderer) -> dict[str, list[int]]:
    """Play one episode with its demonstrator: its tokens, and as labels those that the policy says."""
    episode, dialogue = Episode(make_task(env, d, seed, shop), shop), renderer.dialogue()
    player = demonstrator(env, shop, None, lambda _: True)
    ids = dialogue.open(episode.messages, episode.tools)
    labels = [IGNORED] * len(ids)
    while True:
        message = player(list(episode.messages), episode.tools)
        said = dialogue.say(message)
        turn = episode.act(message)
        heard = [] if turn.done else dialogue.follow(turn.messages)
        ids += said + heard
        labels += said + [IGNORED] * len(heard)
        if turn.done:
            return {"input_ids": ids, "labels": labels}


def padded(rows: list[dict[str, list[int]]], pad: int) -> dict[str, torch.Tensor]:
    """Make a batch, rows padded at their ends: (B, L) each."""
    longest = max(len(row["input_ids"]) for row in rows)

    def filled(name: str, value: int) -> torch.Tensor:
        return torch.tensor([row[name] + [value] * (longest - len(row[name])) for row in rows])

    mask = [[1] * len(row["input_ids"]) + [0] * (longest - len(row["input_ids"])) for row in rows]
    return {
        "input_ids": filled("input_ids", pad),
        "labels": filled("labels", IGNORED),
        "attention_mask": torch.tensor(mask),
    }


class Stop(TrainerCallback):
    """Ends training when the time is over, with a checkpoint."""

    def __init__(self, minutes: float) -> None:
        self.until = time.monotonic() + 60 * minutes

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if time.monotonic() > self.until:
            control.should_training_stop = control.should_save = True


def main() -> None:
    """Train, and save the model as a Hugging Face folder."""
    chosen = arguments()
    gpu = torch.cuda.is_available()
    shop, policy = load_shop(), load_chat_policy(chosen.model)
    rows = Played(chosen.env or list(ENVIRONMENTS), chosen.levels, chosen.longest, shop, policy.renderer)
    settings = TrainingArguments(
        output_dir=str(chosen.out / "checkpoints"),
        max_steps=chosen.steps,
        per_device_train_batch_size=chosen.batch,
        gradient_accumulation_steps=chosen.accumulate,
        learning_rate=chosen.lr,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=chosen.warmup,
        bf16=gpu or chosen.bf16,
        use_cpu=not gpu,
        logging_steps=10 if gpu else 1,
        save_steps=200 if gpu else 10,
        save_total_limit=1,
        report_to="none",
        seed=0,
        remove_unused_columns=False,
    )
    trainer = Trainer(
        policy.model,
        settings,
        train_dataset=rows,
        data_collator=lambda batch: padded(batch, policy.renderer.pad_id),
        callbacks=[Stop(chosen.minutes)],
    )
    begun = any((chosen.out / "checkpoints").glob("checkpoint-*"))
    trainer.train(resume_from_checkpoint=begun)
    trainer.model.save_pretrained(chosen.out)
    policy.tokenizer.save_pretrained(chosen.out)
    log = [entry for entry in trainer.state.log_history if "loss" in entry]
    card = torch.cuda.get_device_name() if gpu else "no GPU"
    found = {"card": card, "steps": trainer.state.global_step, "levels": chosen.levels, "log": log}
    (chosen.out / "sft.json").write_text(json.dumps(found, indent=1) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="Hugging Face folder (make smollm2-weights)")
    parser.add_argument("out", type=Path)
    parser.add_argument("--env", action="append", choices=list(ENVIRONMENTS), help="default: all eight")
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--longest", type=int, default=4096, help="tokens of an episode")
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=4, help="episodes at a time")
    parser.add_argument("--accumulate", type=int, default=8, help="batches a step")
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument(
        "--bf16", action="store_true", help="half the time on a CPU that has it, many times as much on others"
    )
    parser.add_argument("--warmup", type=int, default=20, help="steps")
    return parser.parse_args()


if __name__ == "__main__":
    main()
