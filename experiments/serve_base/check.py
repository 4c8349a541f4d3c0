"""The starter *base* through the real `transformers serve`, and as weights in this process: are its episodes the same?

    make serve-check                       # writes experiments/serve_base/check.json
    make serve-check ARGS="--tasks 1 --env CART"

Three folders are tried. The shipped one as it is; the same model saved by transformers, whose `/v1/chat/completions`
and `/v1/completions` are asked; and that one behind `serve.py --backend`, through which held-out tasks at d = 0 are
played greedily: once with the rendered text as it is, once with separators between its tokens. They are compared with
the same tasks by our own sampler.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from serve import Answerer, export, server_of

from ecomlab import ENVIRONMENTS, load_shop
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.endpoint.contestant import EndpointContestant
from ecomlab.evaluation.endpoint.settings import EndpointSettings
from ecomlab.evaluation.evaluation import Contestant
from ecomlab.evaluation.local import LocalContestant
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcript import Transcript
from ecomlab.files import write_json
from ecomlab.lab.provenance import commit
from ecomlab.models.load import load_policy, policy_folder

HERE = Path(__file__).parent
PATIENCE = 180.0
"""Seconds that a server may take to start."""
SERVE = "import sys; from transformers.cli.transformers import main; sys.argv[0] = 'transformers'; sys.exit(main())"
"""What the program `transformers` does."""


def main() -> None:
    """Play and compare; the exit code is 1 if an episode differs, and not in how an invalid message arrives alone."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=4, help="held-out tasks of each environment")
    parser.add_argument("--env", action="append", help="an environment; default: all")
    parser.add_argument("--port", type=int, default=8126)
    parser.add_argument("--out", type=Path, default=HERE / "check.json")
    chosen = parser.parse_args()
    envs = chosen.env or list(ENVIRONMENTS)
    shop = load_shop()
    policy = load_policy("base", shop, envs)
    jobs = [Job(env, 0, seed) for env in envs for seed in held_out_seeds(0, chosen.tasks)]
    with tempfile.TemporaryDirectory() as folder:
        export(policy, Path(folder))
        seen = {"shipped folder": why_not(policy_folder("base"), chosen.port)}
        with serving(Path(folder), chosen.port) as url:
            hello = [{"role": "user", "content": "Hello, I am looking for a mug."}]
            seen["saved by transformers, /v1/chat/completions"] = asked(
                f"{url}/v1/chat/completions", messages=hello
            )
            prompt = policy.renderer.decode(policy.renderer.dialogue().open(hello, []))
            seen["saved by transformers, /v1/completions"] = asked(
                f"{url}/v1/completions", prompt=prompt, max_tokens=64
            )
            plain, apart = AsItIs("base", policy, url), Counting("base", policy, url)
            theirs = [(one, through(one, jobs, shop)) for one in (plain, apart)]
    ours = played(LocalContestant("base", policy, decoding="greedy"), jobs, shop)
    texts = ("as it is", "separated")
    found = {
        "seen": seen,
        "text": {
            name: summed(answerer, episodes, ours, envs)
            for name, (answerer, episodes) in zip(texts, theirs, strict=True)
        },
        "made_with": {"commit": commit(), **{name: version(name) for name in ("transformers", "torch")}},
    }
    write_json(chosen.out, found)
    print(json.dumps(found, indent=1))
    alike = found["text"]["separated"]
    sys.exit(0 if alike["same"] + alike["invalid in both"] == len(jobs) else 1)


def through(answerer: Answerer, jobs: Sequence[Job], shop: Any) -> "dict[tuple[str, int], Transcript]":
    """Play through `serve.py` and its backend, over HTTP as `ecomlab eval` does."""
    with server_of(answerer, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings = EndpointSettings(
            url=f"http://127.0.0.1:{server.server_port}/v1", model="base", temperature=0,
            context=2048, max_tokens=256, concurrency=1,
        )  # fmt: skip
        found = played(EndpointContestant(settings), jobs, shop)
        server.shutdown()
    return found


def summed(answerer: "Counting", theirs: Any, ours: Any, envs: Sequence[str]) -> dict[str, Any]:
    """Compare what was played with what our sampler plays."""
    rows = [compared(env, theirs, ours) for env in envs]
    return {
        "episodes": len(theirs),
        "same": sum(row["same"] for row in rows),
        "invalid in both": sum(row["invalid in both"] for row in rows),
        "requests": answerer.requests,
        "read as other tokens": answerer.other,
        "seconds": round(sum(one.usage["agent"].seconds for one in theirs.values()), 1),
        "environments": rows,
    }


class Counting(Answerer):
    """Counts the prompts whose text makes other tokens than were sampled and rendered."""

    requests = other = 0

    def _text(self, ids: Sequence[int]) -> str:
        text = self._written(ids)
        self.requests += 1
        self.other += self.policy.renderer.encode(text) != list(ids)
        return text

    def _written(self, ids: Sequence[int]) -> str:
        return super()._text(ids)


class AsItIs(Counting):
    """Sends text without separators."""

    def _written(self, ids: Sequence[int]) -> str:
        return str(self.policy.renderer.decode(ids))


def command(folder: Path, port: int) -> list[str]:
    given = ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-c", SERVE, *given, "--device", "cpu", "--dtype", "float32"]


@contextmanager
def serving(folder: Path, port: int) -> Iterator[str]:
    """Run `transformers serve` with the model in a folder."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command(folder, port), stdout=log, stderr=subprocess.STDOUT)
        try:
            wait(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}"
        except BaseException:
            log.seek(0)
            print(log.read()[-4000:], file=sys.stderr)
            raise
        finally:
            process.terminate()
            process.wait(30)


def wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a server answers. Ends the program if it does not."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        if process.poll() is not None:
            sys.exit(f"transformers serve ended with {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    sys.exit(f"transformers serve does not answer at {url} after {PATIENCE:.0f} s")


def why_not(folder: Path, port: int) -> str:
    """Say with which error `transformers serve` ends on a folder; "it serves" if it does not in time."""
    try:
        done = subprocess.run(
            command(folder, port), capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return "it serves"
    return f"ended with {done.returncode}: {done.stderr.strip().splitlines()[-1]}"


def asked(url: str, **given: Any) -> str:
    """Ask a server once; its status and the beginning of its answer."""
    body = json.dumps({"temperature": 0, **given}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return f"{answer.status}: {json.loads(answer.read())['choices'][0]['text']!r}"
    except urllib.error.HTTPError as error:
        return f"{error.code}: {error.read()[:300].decode()!r}"


def played(contestant: Contestant, jobs: Sequence[Job], shop: Any) -> dict[tuple[str, int], Transcript]:
    return {(one.job.env, one.job.seed): one for one in contestant.play(jobs, shop)}


def compared(env: str, theirs: Any, ours: Any) -> dict[str, Any]:
    """Compare an environment's episodes: messages but the ids of calls, and scores."""
    pairs = [(theirs[key], ours[key]) for key in theirs if key[0] == env]
    same = [said(one) == said(other) for one, other in pairs]
    differ = [pair for pair, equal in zip(pairs, same, strict=True) if not equal]
    right = [[one.score.correct for one in pair] for pair in pairs]
    return {
        "env": env,
        "episodes": len(pairs),
        "same": sum(same),
        "invalid in both": sum(one.end == other.end == "invalid" for one, other in differ),
        "correct, served": sum(one for one, _ in right),
        "correct, here": sum(other for _, other in right),
        "unscored": sum(bool(one.unscored) for pair in pairs for one in pair),
        "differ": [one.job.seed for one, _ in differ],
    }


def said(one: Any) -> list[Any]:
    """What was said, called and heard in an episode, a trajectory or a transcript, without the ids of calls, and how it
    ended."""
    messages = [
        [m["role"], m.get("content") or "", [c["function"] for c in m.get("tool_calls") or ()]]
        for m in one.messages
    ]
    return [messages, one.end, one.score.value]


if __name__ == "__main__":
    main()
