"""SmolLM2-135M-Instruct behind a llama.cpp server on loopback, with OpenAI's chat completions.

`make smollm2-server` builds what this needs and starts it; it serves until it is interrupted. It needs xllamacpp alone,
nothing of ecomlab. More threads than free cores make llama.cpp many times slower: its threads wait for each other.
"""

import argparse
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from xllamacpp import CommonParams, Server

NAME = "smollm2-135m"
"""Name of the model in requests and answers."""
PATIENCE = 300.0
"""Seconds that loading may take."""


def main() -> None:
    """Serve until interrupted."""
    chosen = arguments()
    if not chosen.model.is_file():
        sys.exit(
            f"there is no file {chosen.model}; `ecomlab assets get {NAME}` fetches it and prints its path"
        )
    if not free(chosen.port):
        sys.exit(f"port {chosen.port} of 127.0.0.1 is in use; choose another with --port")
    began = time.monotonic()
    server = Server(parameters(chosen))
    url = server.listening_address
    wait(url)
    seconds = time.monotonic() - began
    print(f"{url}/v1 answers as {NAME!r} after {seconds:.0f} s; Ctrl-C ends it", flush=True)
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    over.wait()
    # Nothing is to be saved, and llama.cpp's own ending can hang while an answer is being written.
    os._exit(0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="GGUF file")
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument(
        "--context", type=int, default=8192, help="tokens of a conversation; the model's own: 8192"
    )
    parser.add_argument("--parallel", type=int, default=2, help="conversations at a time")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def parameters(chosen: argparse.Namespace) -> CommonParams:
    """Set up the server: every conversation has the whole context, and none is shortened to fit."""
    given = CommonParams()
    given.model.path = str(chosen.model)
    given.model_alias = {NAME}
    given.hostnames = ["127.0.0.1"]
    given.port = chosen.port
    given.n_ctx = chosen.context * chosen.parallel  # llama.cpp divides it among the conversations
    given.n_parallel = chosen.parallel
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = chosen.threads
    given.ctx_shift = False  # a conversation that is too long gets an error instead of losing its beginning
    given.ui = False
    return given


def free(port: int) -> bool:
    """Tell whether nothing listens on a port; llama.cpp would share it in silence."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def wait(url: str) -> None:
    """Wait until the server is ready. Ends the program if it is not in time."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except urllib.error.HTTPError as error:
            if error.code != 503:  # 503: still loading
                sys.exit(f"{url} answers {error.code}; see what llama.cpp printed above")
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"{url} is not ready after {PATIENCE:.0f} s; see what llama.cpp printed above")


if __name__ == "__main__":
    main()
