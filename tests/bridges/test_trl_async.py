"""TRL's asynchronous trainer, run for real: a tiny policy, rollouts from a stream, and the window rises."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
trl = pytest.importorskip("trl")
torch = pytest.importorskip("torch")

from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, async_grpo_trainer, packing

from ecomlab import Shop, Stream, load_shop
from ecomlab.bridges.trl import STATE, SaveStream
from ecomlab.bridges.trl_async import NO_ROWS, LocalWeights, ServedSampler, StreamWorker
from ecomlab.difficulty import COMPOSED
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.samplers.cached import Limits

pytestmark = pytest.mark.slow


class DenseAttention:
    """What the trainer takes from a kernel for Hopper GPUs, by torch."""

    @staticmethod
    def flash_attn_varlen_func(
        query: Any,
        key: Any,
        value: Any,
        starts_q: Any,
        starts_k: Any,
        *lengths: int,
        softmax_scale: float,
        **_: Any,
    ) -> Any:
        made, group = [], query.shape[1] // key.shape[1]
        for i in range(len(starts_q) - 1):
            rows, columns = slice(starts_q[i], starts_q[i + 1]), slice(starts_k[i], starts_k[i + 1])
            q = query[rows].transpose(0, 1)
            k, v = (x[columns].transpose(0, 1).repeat_interleave(group, 0) for x in (key, value))
            seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1])
            one = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=seen, scale=softmax_scale
            )
            made.append(one.transpose(0, 1))
        return torch.cat(made)


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_flash_attn", lambda: DenseAttention)
    monkeypatch.setattr(async_grpo_trainer, "get_peak_flops_per_device", lambda *_: 1e12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shop: Shop) -> Path:
    made = tmp_path_factory.mktemp("novice")
    policy = load_policy("novice", shop, ["CART"])
    policy.model.save_pretrained(made)
    policy.tokenizer.save_pretrained(made)
    return made


def worker_of(shop: Shop) -> tuple[StreamWorker, Policy]:
    policy = load_policy("novice", shop, ["CART"])
    stream = Stream("adaptive", "CART", groups_per_step=4, axes=COMPOSED, shop=shop, tau_acc=0.7, tau_num=16)
    sampler = policy.sampler(Limits(64, 256, 1024))
    return StreamWorker(stream, policy.renderer, sampler, group_size=4, groups=4, waiting=16), policy


def trainer_of(folder: Path, out: Path, worker: StreamWorker, policy: Policy, steps: int) -> Any:
    args = AsyncGRPOConfig(
        str(out), max_steps=steps, token_budget=2048, gradient_accumulation_steps=1, learning_rate=3e-4, bf16=False,
        dtype="float32", save_steps=3, report_to="none", use_cpu=True, disable_tqdm=True, logging_steps=1,
    )  # fmt: skip
    return AsyncGRPOTrainer(
        str(folder), args=args, train_dataset=NO_ROWS, processing_class=policy.tokenizer, rollout_worker=worker,
        weight_transfer=LocalWeights(policy, worker), callbacks=[SaveStream(worker.stream)],
    )  # fmt: skip


def test_it_trains_and_the_window_rises(folder: Path, tmp_path: Path, shop: Shop) -> None:
    worker, policy = worker_of(shop)
    before = policy.model.get_input_embeddings().weight.detach().clone()
    first = trainer_of(folder, tmp_path, worker, policy, 6)
    first.train()
    found = [row for row in first.state.log_history if "ratio" in row]
    assert abs(found[0]["ratio"] - 1) < 1e-5 and abs(found[0]["kl"]) < 1e-6, (
        "the sampler's log-probabilities are exact"
    )
    top = worker.stream.schedule.window("CART")[1]  # type: ignore[attr-defined]
    assert top >= 2 and not torch.equal(before, policy.model.get_input_embeddings().weight)


def last_checkpoint(out: Path) -> Path | None:
    """The newest checkpoint with a stream's state, which is written last."""
    whole = [path.parent for path in out.glob(f"checkpoint-*/{STATE}")]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def main(folder: str, out: str, steps: str) -> None:
    """Train, or go on from the last checkpoint."""
    packing._flash_attn = lambda: DenseAttention
    async_grpo_trainer.get_peak_flops_per_device = lambda *_: 1e12
    worker, policy = worker_of(load_shop(2_000))
    if last := last_checkpoint(Path(out)):
        SaveStream(worker.stream).resume(last)
        saved = worker.stream.state()
        first = saved["waiting"][0]["place"] if saved["waiting"] else saved["place"]
        assert list(worker.stream.next_group().place) == first, "what was drawn and not reported comes first"
        worker.stream.restore(json.loads((last / STATE).read_text()))
    trainer = trainer_of(Path(folder), Path(out), worker, policy, int(steps))
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    print(json.dumps({"step": trainer.state.global_step, "state": worker.stream.state()}))


def test_a_run_killed_minus_nine_goes_on(folder: Path, tmp_path: Path) -> None:
    here = Path(__file__).parents[1]
    command = [sys.executable, "-m", "bridges.test_trl_async", str(folder), str(tmp_path)]
    given: dict[str, Any] = {"cwd": here, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "60"], **given) as process:
        while process.poll() is None and last_checkpoint(tmp_path) is None:
            time.sleep(0.05)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    last = last_checkpoint(tmp_path)
    assert last is not None
    saved, step = json.loads((last / STATE).read_text()), int(last.name.rpartition("-")[2])
    done = subprocess.run([*command, str(step + 2)], check=True, **given)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["step"] == step + 2 and told["state"]["place"] > saved["place"]


def test_what_is_trained_is_what_was_sampled(shop: Shop) -> None:
    worker, policy = worker_of(shop)
    while worker.rollout_buffer.qsize() < 8:
        worker._play()
    samples = [worker.rollout_buffer.get() for _ in range(worker.rollout_buffer.qsize())]
    for sample in samples:
        with torch.no_grad():
            logits = policy.model(torch.tensor(sample.input_ids)[None]).logits[0, :-1]
        logp = (
            torch.log_softmax(logits, -1).gather(1, torch.tensor(sample.input_ids[1:])[:, None])[:, 0].numpy()
        )
        trained = sample.completion_mask[1:] == 1
        assert np.abs(logp - sample.old_log_probs[1:])[trained].max() < 1e-4
        text = policy.renderer.decode(sample.input_ids[1:][trained].tolist())
        said = [m["content"] for m in sample.completion if m["role"] in ("user", "tool")]
        assert said and "<|im_start|>" not in text, "neither customer nor tools are trained"
    groups = {sample.group_id for sample in samples}
    for group in groups:
        assert abs(sum(s.advantage for s in samples if s.group_id == group)) < 1e-4


def test_rollouts_that_stop_raise_in_the_trainer(shop: Shop) -> None:
    worker, _ = worker_of(shop)

    def broken() -> None:
        raise OSError("no server")

    worker._play = broken  # type: ignore[method-assign]
    worker.start()
    worker._thread.join(10)
    with pytest.raises(RuntimeError, match="stopped") as caught:
        worker.check_health(60)
    assert isinstance(caught.value.__cause__, OSError)


def test_a_served_policy_is_asked_in_token_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """One exchange in the shape of vLLM's server."""
    asked: dict[str, Any] = {}

    def create(**request: Any) -> Any:
        asked.update(request, prompt=[list(ids) for ids in request["prompt"]])
        logprobs = type("L", (), {"token_logprobs": [-0.1, -0.2]})
        return type("A", (), {"choices": [type("C", (), {"token_ids": [5, 9], "logprobs": logprobs})] * 2})

    sampler = ServedSampler("http://127.0.0.1:1", "policy", [9], Limits(8, 16, 64))
    monkeypatch.setattr(sampler.client.completions, "create", create)
    sampler.start([None, None])  # type: ignore[list-item]
    said = sampler.turn([0, 1], [[1, 2], [3]])
    assert asked["prompt"] == [[1, 2], [3]] and asked["temperature"] == 1.0
    assert [(one.ids, one.logprobs, one.truncated) for one in said] == [([5, 9], [-0.1, -0.2], False)] * 2


if __name__ == "__main__":
    main(*sys.argv[1:])
