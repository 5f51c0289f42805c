"""Which project functions a request passes: traces six requests to a real application, in a process of its own.

    PYTHONPATH=ROOT python scripts/request_paths.py ROOT

Started by `scripts.measure_structure`; prints one JSON object per request. The application is that of ROOT, with the
fake embedder of its tests. Only files below ROOT/souvenir and ROOT/*.py count. Functions are counted by code object,
calls by entry: resuming a generator or coroutine is not a call, and comprehensions are not functions.

A profile hook is set in every thread before the application starts, so threads of pools and writers that already run
are traced too. A request is traced while the background threads are idle; it ends when its response is complete, an
extraction when its job has ended. Each request is sent several times, with other words, and the round with the median
number of calls is reported.
"""

from __future__ import annotations

import dis
import importlib
import inspect
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from starlette.testclient import TestClient

ROUNDS = 5
SAMPLE_S = 0.05
TICK_S = 1.2
"""Longer than the pause of any background thread that looks for work by itself."""
PATIENCE_S = 60.0
NO_FUNCTIONS = frozenset({"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
FINISHED = frozenset({"completed", "failed", "cancelled"})
NAMES = ("billing", "search", "gateway", "ledger", "archive", "mailer", "report", "session")
"""The word that differs between rounds; the first round warms up."""

Call = tuple[CodeType, str]
Json = dict[str, Any]


class Tracer:
    """Records calls of project code in all threads, in their order, while it is switched on."""

    def __init__(self, root: Path) -> None:
        self._package = f"{root / 'souvenir'}/"
        self._root = str(root)
        self._polling: ContextVar[bool] = ContextVar("polling", default=False)
        self.calls: list[Call] = []

    def install(self) -> None:
        """Trace this thread and all that are started from now on."""
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)

    def unobserved(self, ask: Callable[[], Any]) -> Any:
        """Do something without counting it; tasks and pool threads that it uses inherit the context."""
        token = self._polling.set(True)
        try:
            return ask()
        finally:
            self._polling.reset(token)

    def wait_until_idle(self) -> None:
        """Return right after background threads did the same twice in a row, or when they do nothing.

        Some look for work every half second; what they do then must not fall into a request.

        :raises TimeoutError: If they do not come to rest.
        """
        deadline, previous = time.monotonic() + PATIENCE_S, None
        while time.monotonic() < deadline:
            burst = self._next_burst()
            if not burst or burst == previous:
                return
            previous = burst
        raise TimeoutError(f"still at work: {sorted({code.co_qualname for code, _ in self.calls})}")

    def _next_burst(self) -> Counter[Call]:
        """Return the calls until there are no more; empty if there are none."""
        self.calls.clear()
        seen, until = 0, time.monotonic() + TICK_S
        while time.monotonic() < until:
            time.sleep(SAMPLE_S)
            if seen and len(self.calls) == seen:
                break
            seen = len(self.calls)
        burst = Counter(self.calls)
        self.calls.clear()
        return burst

    def _on_event(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        path = self._project_path(code)
        if path is not None and frame.f_lasti <= _first_instruction(code) and not self._polling.get():
            self.calls.append((code, path))

    @cache  # noqa: B019  (one tracer a process)
    def _project_path(self, code: CodeType) -> str | None:
        """The file of a project function, relative to the root."""
        path = code.co_filename
        if code.co_name in NO_FUNCTIONS or not path.endswith(".py"):
            return None
        if path.startswith(self._package) or str(Path(path).parent) == self._root:
            return str(Path(path).relative_to(self._root))
        return None


@cache
def _first_instruction(code: CodeType) -> int:
    """Where the function's first RESUME is: a frame entered behind it continues an earlier call."""
    return next(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME")


def endpoint_code(routes: Any, method: str, path: str) -> CodeType:
    """The code of the function that answers a request.

    :raises LookupError: If no route does.
    """
    for route in routes:
        if getattr(route, "path", None) == path and method in (getattr(route, "methods", None) or ()):
            code: CodeType = inspect.unwrap(route.endpoint).__code__
            return code
    raise LookupError(f"no route {method} {path}")


@dataclass(frozen=True, slots=True)
class TracedRequest:
    method: str
    path: str
    """That of the route."""
    send: Callable[[str], object]


class Requests:
    """The six requests; each is sent with a name, the first one for warming up."""

    def __init__(self, client: TestClient, tracer: Tracer) -> None:
        self._client = client
        self._tracer = tracer

    def prepare(self) -> None:
        """Store what the requests read."""
        deadline = time.monotonic() + PATIENCE_S
        while self._client.get("/health/ready").status_code != 200 and time.monotonic() < deadline:
            time.sleep(SAMPLE_S)
        for number, name in enumerate(NAMES):
            text = f"The {name} service listens on port {8000 + number} and belongs to team {name}."
            self._post("/memory/add", {"text": text, "source": "notes"})
        for name in NAMES:
            self._add_messages(name)

    def all(self) -> Iterator[TracedRequest]:
        yield TracedRequest("GET", "/memory/{memory_id}", lambda _: self._get("/memory/1"))
        yield TracedRequest("POST", "/search", self._search)
        yield TracedRequest("POST", "/memory/add", self._add)
        yield TracedRequest("POST", "/messages/batch", self._add_messages)
        yield TracedRequest("POST", "/context/{agent_name}", self._context)
        yield TracedRequest("POST", "/memory/extract", self._extract)

    def _search(self, name: str) -> None:
        self._post("/search", {"query": f"Where does the {name} service listen?"})

    def _add(self, name: str) -> None:
        self._post("/memory/add", {"text": f"The {name} service writes to Postgres.", "source": "notes"})

    def _context(self, name: str) -> None:
        self._post("/context/ana", {"query": f"What did we say about the {name} service?"})

    def _add_messages(self, name: str) -> None:
        said = [
            ("user", f"Which port does the {name} service use?"),
            ("assistant", f"The {name} service uses port 8443 since the move."),
        ]
        messages = [{"role": role, "content": text} for role, text in said]
        self._post("/messages/batch", {"agent_name": "ana", "messages": messages})

    def _extract(self, name: str) -> None:
        transcript = (
            f"User: We decided to use Postgres for the {name} service.\n"
            f"Assistant: Noted.\nUser: I prefer short reports of the {name} team in the morning."
        )
        job = self._post("/memory/extract", {"messages": transcript, "source": f"chats/{name}"})["job_id"]
        deadline = time.monotonic() + PATIENCE_S
        while self._tracer.unobserved(lambda: self._get(f"/memory/extract/{job}"))["status"] not in FINISHED:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the extraction {job} did not end")
            time.sleep(0.02)

    def _get(self, path: str) -> Json:
        return self._answer("GET", path, None)

    def _post(self, path: str, body: Json) -> Json:
        return self._answer("POST", path, body)

    def _answer(self, method: str, path: str, body: Json | None) -> Json:
        response = self._client.request(method, path, json=body)
        if response.status_code >= 300:
            raise RuntimeError(f"{method} {path} was answered {response.status_code}: {response.text}")
        answer: Json = response.json()
        return answer


def figures_of(calls: list[Call], endpoint: CodeType) -> dict[str, int]:
    """Figures of one request; calls before the first one of its endpoint count as before the route."""
    before = calls[: next(place for place, (code, _) in enumerate(calls) if code is endpoint)]
    return {
        "files": len({path for _, path in calls}),
        "functions": len({code for code, _ in calls}),
        "calls": len(calls),
        "files_before": len({path for _, path in before}),
        "functions_before": len({code for code, _ in before}),
        "calls_before": len(before),
    }


def trace(root: Path) -> Iterator[Json]:
    """One object per request."""
    tracer = Tracer(root)
    tracer.install()
    application = importlib.import_module("app")
    fakes = importlib.import_module("tests.fake_embedder")
    app = application.create_app(None, fakes.FakeEmbedder(), fakes.fake_of)
    with TestClient(app, base_url="http://localhost") as client:
        requests = Requests(client, tracer)
        requests.prepare()
        for request in requests.all():
            endpoint = endpoint_code(app.routes, request.method, request.path)
            request.send(NAMES[0])
            rounds: list[list[Call]] = []
            for name in NAMES[1 : 1 + ROUNDS]:
                tracer.wait_until_idle()
                request.send(name)
                rounds.append(tracer.calls.copy())
            rounds.sort(key=len)
            middle = rounds[len(rounds) // 2]
            yield {
                "request": f"{request.method} {request.path}",
                **figures_of(middle, endpoint),
                "spread": [len(rounds[0]), len(rounds[-1])],
                "paths": list(dict.fromkeys(path for _, path in middle)),
            }
        sys.setprofile(None)


def main() -> int:
    for request in trace(Path(sys.argv[1]).resolve()):
        print(json.dumps(request), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
