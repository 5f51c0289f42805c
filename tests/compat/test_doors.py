"""One store behind every door: what goes in by one comes out by all, for its agent only, until one of them erases it.

Doors of memories: the API, Mem0's routes, Claude's memory tool and MCP. Doors of messages: the API and the proxy. The
context, the proxy and MCP's `search` read both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.client.models import MODEL
from tests.client.running import RunningService
from tests.compat.proxy.conftest import indexed_at_once, settings_for, wait_until_indexed
from tests.mcp.conftest import Asking
from tests.thoroughness import sampled
from tests.vendors.llm import LLMVendor

ADMIN = "admin-key-of-the-doors"
AGENTS = ("alpha", "beta")
MEMORY, MESSAGE = "memory", "message"
STEPS = sampled(24, 200)
ERASED_SHARE = 0.3


@dataclass(frozen=True)
class Written:
    """:param erase: The ways to erase it, by door."""

    kind: str
    agent: str
    door: str
    word: str
    erase: dict[str, Callable[[], object]] = field(repr=False)


class Doors:
    """Every door of a service, with the key of each agent."""

    def __init__(self, service: RunningService, vendor: LLMVendor) -> None:
        self.service = service
        self.vendor = vendor
        self.http = httpx.Client(base_url=service.url, timeout=30)
        self.mcp = Asking(self.http)
        self.keys = {agent: self._key(agent) for agent in AGENTS}
        schema = {"properties": {"memories": {"type": "array", "items": {"type": "string"}}}}
        self.export = self.post("/v1/exports/", AGENTS[0], {"schema": schema})["id"]
        self.writers = {
            "api": self.write_memory,
            "mem0": self.write_mem0,
            "memory tool": self.write_file,
            "mcp": self.write_mcp,
            "messages": self.write_message,
            "proxy": self.write_proxied,
        }
        self.readers = {
            "api": (self.read_search, {MEMORY}),
            "mem0": (self.read_mem0, {MEMORY}),
            "mem0 export": (self.read_export, {MEMORY}),
            "mcp memories": (self.read_mcp_memories, {MEMORY}),
            "messages": (self.read_messages, {MESSAGE}),
            "mcp": (self.read_mcp, {MEMORY, MESSAGE}),
            "context": (self.read_context, {MEMORY, MESSAGE}),
            "proxy": (self.read_proxied, {MEMORY, MESSAGE}),
        }

    # --- writing -----------------------------------------------------------------------------------------------------

    def write_memory(self, agent: str, word: str) -> Written:
        made = self.post("/memory/add", agent, {"text": sentence(word), "source": "notes"})
        return self.memory("api", agent, word, made["id"])

    def write_mem0(self, agent: str, word: str) -> Written:
        said = [{"role": "user", "content": sentence(word)}]
        made = self.post("/v3/memories/add/", agent, {"messages": said, "user_id": "ann", "infer": False})
        return self.memory("mem0", agent, word, int(made["results"][0]["id"]))

    def write_file(self, agent: str, word: str) -> Written:
        path = f"/memories/{word}.md"
        self.tool(agent, command="create", path=path, file_text=sentence(word))
        [found] = [one for one in self.get("/memories", agent)["memories"] if word in one["text"]]
        written = self.memory("memory tool", agent, word, found["id"])
        written.erase["memory tool"] = lambda: self.tool(agent, command="delete", path=path)
        return written

    def write_mcp(self, agent: str, word: str) -> Written:
        made = self.call(agent, "add_memory", text=sentence(word))
        written = self.memory("mcp", agent, word, self.number(agent, word))
        written.erase["mcp"] = lambda: self.call(agent, "delete_memory", memory_id=made["memory_id"])
        return written

    def write_message(self, agent: str, word: str) -> Written:
        body = {"agent_name": agent, "role": "user", "content": sentence(word), "session_id": f"s-{word}"}
        self.post("/messages", agent, body)
        return self.message("messages", agent, word)

    def write_proxied(self, agent: str, word: str) -> Written:
        self.proxied(agent, sentence(word), f"s-{word}")
        return self.message("proxy", agent, word)

    def memory(self, door: str, agent: str, word: str, number: int) -> Written:
        erase: dict[str, Callable[[], object]] = {
            "api": lambda: self.delete(f"/memory/{number}", agent),
            "mem0": lambda: self.delete(f"/v1/memories/{number}/", agent),
        }
        return Written(MEMORY, agent, door, word, erase)

    def message(self, door: str, agent: str, word: str) -> Written:
        erase: dict[str, Callable[[], object]] = {"sessions": lambda: self.delete(f"/sessions/{agent}/s-{word}", agent)}
        [uid, *_] = [one["id"] for one in self.get(f"/messages/{agent}", agent) if word in one["content"]]
        erase["messages"] = lambda: self.delete(f"/messages/{agent}/{uid}", agent)
        return Written(MESSAGE, agent, door, word, erase)

    # --- reading -----------------------------------------------------------------------------------------------------

    def read_search(self, agent: str, word: str) -> Any:
        return self.post("/search", agent, {"query": question(word), "k": 10})["results"]

    def read_mem0(self, agent: str, word: str) -> Any:
        return self.post("/v3/memories/search/", agent, {"query": question(word), "top_k": 10, "filters": {}})

    def read_export(self, agent: str, word: str) -> Any:
        """The export that one agent created before anything was written."""
        return self.post("/v1/exports/get/", agent, {"memory_export_id": self.export})

    def read_mcp_memories(self, agent: str, word: str) -> Any:
        return self.call(agent, "search_memory", query=question(word))

    def read_messages(self, agent: str, word: str) -> Any:
        return self.post("/messages/search", agent, {"agent_name": agent, "query": question(word)})

    def read_mcp(self, agent: str, word: str) -> Any:
        return self.call(agent, "search", query=question(word))

    def read_context(self, agent: str, word: str) -> Any:
        return self.post(f"/context/{agent}", agent, {"query": question(word)})["text"]

    def read_proxied(self, agent: str, word: str) -> Any:
        """What the vendor was shown beside the question, which is in no door's store afterwards."""
        question_of = question(word)
        self.proxied(agent, question_of, f"asked-{word}")
        shown = [one for one in self.vendor.requests[-1].body["messages"] if one["content"] != question_of]
        self.delete(f"/sessions/{agent}/asked-{word}", agent)
        return shown

    def found(self, written: Written, agent: str) -> dict[str, bool]:
        """By door, whether the agent's key finds what was written."""
        return {
            name: fact(written.word) in str(read(agent, written.word))
            for name, (read, kinds) in self.readers.items()
            if written.kind in kinds
        }

    # --- requests ----------------------------------------------------------------------------------------------------

    def proxied(self, agent: str, content: str, session: str) -> None:
        body = {"model": MODEL, "messages": [{"role": "user", "content": content}]}
        self.post("/v1/chat/completions", agent, body, **{"X-Souvenir-Session": session})
        wait_until_indexed(self.service)

    def tool(self, agent: str, **command: Any) -> Any:
        answer = self.post(f"/agents/{agent}/memory-tool", agent, command)
        assert answer["is_error"] is False, answer
        return answer

    def call(self, agent: str, tool: str, **arguments: Any) -> Any:
        return self.mcp.call(tool, headers=self.headers(agent), **arguments)

    def number(self, agent: str, word: str) -> int:
        [found] = [one["id"] for one in self.get("/memories", agent)["memories"] if word in one["text"]]
        return int(found)

    def get(self, path: str, agent: str) -> Any:
        return answered(self.http.get(path, params={"limit": 1000}, headers=self.headers(agent)))

    def post(self, path: str, agent: str, body: Any, **headers: str) -> Any:
        return answered(self.http.post(path, json=body, headers={**self.headers(agent), **headers}))

    def delete(self, path: str, agent: str) -> Any:
        return answered(self.http.delete(path, headers=self.headers(agent)))

    def headers(self, agent: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[agent]}"}

    def _key(self, agent: str) -> str:
        body = {"name": agent, "role": "read-write", "namespace": agent}
        made = answered(self.http.post("/api/keys", json=body, headers={"X-API-Key": ADMIN}))
        levels = {"quick_memory": True, "full_memory": True, "logs": True}
        answered(self.http.post("/agents", json={"name": agent}, headers={"X-API-Key": ADMIN}))
        answered(self.http.put(f"/agents/{agent}/access", json=levels, headers={"X-API-Key": ADMIN}))
        return str(made["key"])


def answered(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()


def fact(word: str) -> str:
    return f"behind the {word} door"


def sentence(word: str) -> str:
    return f"The {word} lantern hangs {fact(word)}."


def question(word: str) -> str:
    return f"Where does the {word} lantern hang?"


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    vendor = LLMVendor()
    vendor.script(lambda _: "Noted.")
    vendor.start()
    service = RunningService(
        tmp_path_factory.mktemp("doors") / "data",
        **settings_for(vendor),
        api_key=ADMIN,
        mcp_tools="memory,connector",
    )
    with indexed_at_once():
        service.start()
        doors = Doors(service, vendor)
        yield doors
        doors.http.close()
        service.stop()
    vendor.stop()


def test_what_goes_in_by_a_random_door_comes_out_by_every_other_until_one_erases_it(doors: Doors):
    chance = random.Random(27)
    kept: list[Written] = []
    for step in range(STEPS):
        door, agent = chance.choice(sorted(doors.writers)), chance.choice(AGENTS)
        written = doors.writers[door](agent, f"w{step}{chance.choice('bcdfg')}x")
        kept.append(written)
        other = next(one for one in AGENTS if one != agent)
        assert set(doors.found(written, agent).values()) == {True}, (written, doors.found(written, agent))
        assert set(doors.found(written, other).values()) == {False}, (written, doors.found(written, other))
        if chance.random() < ERASED_SHARE:
            gone = kept.pop(chance.randrange(len(kept)))
            by = chance.choice(sorted(gone.erase))
            gone.erase[by]()
            assert set(doors.found(gone, gone.agent).values()) == {False}, (gone, by, doors.found(gone, gone.agent))
    for written in kept:
        assert set(doors.found(written, written.agent).values()) == {True}, written


@pytest.mark.parametrize("door", ["api", "mem0", "memory tool", "mcp"])
def test_an_erased_memory_has_no_text_in_any_history(doors: Doors, door: str):
    word = f"erased{door.replace(' ', '')}"
    written = doors.writers[door]("alpha", word)
    number = doors.number("alpha", word)
    written.erase[door]()
    for path in (f"/memory/{number}/history", f"/v1/memories/{number}/history/", "/events/recent"):
        answer = doors.http.get(path, headers=doors.headers("alpha"))
        assert word not in answer.text
