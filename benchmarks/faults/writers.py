"""Threads that write through HTTP until the service dies, each with its own kind of item and its own ledger."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from random import Random
from typing import Any, ClassVar

from benchmarks.faults.jobs import settle_jobs
from benchmarks.faults.ledger import Change, Item, Ledger, Repeat, marked
from benchmarks.service import Client, ServiceFailed

OWNED_MAX = 60
"""Items of one writer: the more it has, the more it deletes, so that every trial takes about as long."""
REFUSED_PAUSE_S = 0.2
JOBS_WAITING_MAX = 2
PAUSE_S = 0.05
SOURCE = "faults"
TALKER, BLOCKER, FORGOTTEN, KNOWN = "talker", "blocker", "forgotten", "known"
AGENTS = (TALKER, BLOCKER, FORGOTTEN, KNOWN)
DONE = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)


@dataclass(slots=True)
class Writer:
    """A ledger and the steps that fill it; `run` plays random ones until the service is gone."""

    seed: int
    ledger: Ledger = field(default_factory=Ledger)
    numbers: Iterator[int] = field(default_factory=count)
    dice: Random = field(init=False)
    client: Client = field(init=False)
    stop: threading.Event = field(init=False)

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)

    def step(self) -> None:
        raise NotImplementedError

    def attach(self, client: Client, stop: threading.Event | None = None) -> None:
        self.client, self.stop = client, stop or threading.Event()

    def run(self, client: Client, stop: threading.Event, failures: list[str]) -> None:
        self.attach(client, stop)
        try:
            while not stop.is_set():
                self.step()
                if isinstance(self, JobWriter):
                    stop.wait(PAUSE_S)
        except OSError:
            return  # the service is gone; what was under way is in the ledger
        except ServiceFailed as error:
            failures.append(f"{type(self).__name__}: {error}")
        finally:
            client.close()

    def write(
        self, method: str, path: str, body: Any = None, *, namespace: str | None = None, once: str | None = None
    ) -> Any:
        """Send until it is let in, and return the answer.

        :raises ServiceFailed: If it is refused for another reason than load.
        """
        status, answer = self.client.call(method, path, body, namespace=namespace, once=once)
        while status == HTTPStatus.TOO_MANY_REQUESTS and not self.stop.wait(REFUSED_PAUSE_S):
            status, answer = self.client.call(method, path, body, namespace=namespace, once=once)
        if status not in DONE:
            raise ServiceFailed(f"{method} {path} was answered {status}: {answer}")
        return answer

    def once(self, path: str, body: Any) -> Repeat:
        return Repeat(path, body, f"key-{self.seed}-{next(self.numbers)}")

    def chosen(self, kind: str) -> tuple[Item, str] | None:
        """An item of a kind with its id."""
        mine = self.ledger.of_kind(kind)
        if not mine:
            return None
        item = self.dice.choice(mine)
        return item, self.ledger.there[item] or ""

    def grows(self, kind: str) -> bool:
        return self.dice.random() < 0.8 - 0.6 * len(self.ledger.of_kind(kind)) / OWNED_MAX


class JobWriter(Writer):
    """Has few jobs waiting at a time."""

    @property
    def may_submit(self) -> bool:
        """Return True if few jobs wait.

        :raises ServiceFailed: If a job did not complete.
        """
        if problems := settle_jobs(self.client, [self.ledger], wait=False):
            raise ServiceFailed("; ".join(problems))
        return len(self.ledger.jobs) < JOBS_WAITING_MAX


def ids_in(answer: Any) -> list[object]:
    """The ids in the answer to an add, a batch or a message."""
    if "messages" in answer:
        return [one["id"] for one in answer["messages"]]
    return list(answer["ids"]) if "ids" in answer else [answer["id"]]


class Memories(Writer):
    """Adds, batches, changes, supersedes, tags and deletes memories."""

    def step(self) -> None:
        chosen = self.chosen("memory")
        if chosen is None or self.grows("memory"):
            self.add(1 if self.dice.random() < 0.5 else self.dice.randint(2, 12))
            return
        item, id_ = chosen
        match self.dice.choice(("patch", "supersede", "delete", "delete", "purge")):
            case "patch":
                new = Item("memory", marked(self.dice))
                self.change(Change((item,), (new,)), "PATCH", f"/memory/{id_}", {"text": new.content}, [id_])
            case "supersede":
                self.supersede(item, id_)
            case "delete":
                self.change(Change((item,)), "DELETE", f"/memory/{id_}")
            case "purge":
                if (old := self.chosen("archived")) is not None:
                    self.change(Change((old[0],)), "DELETE", f"/memory/{old[1]}")

    def add(self, number: int) -> None:
        items = tuple(Item("memory", marked(self.dice)) for _ in range(number))
        bodies = [{"text": item.content, "source": SOURCE} for item in items]
        path, body = ("/memory/add", bodies[0]) if number == 1 else ("/memory/add-batch", {"memories": bodies})
        repeat = self.once(path, body)
        change = Change(added=items, repeat=repeat)
        self.ledger.begin(change)
        self.ledger.acknowledge(change, ids_in(self.write("POST", path, body, once=repeat.key)))

    def supersede(self, item: Item, id_: str) -> None:
        new = Item("memory", marked(self.dice))
        change = Change((item,), (new, Item("archived", item.content)))
        self.ledger.begin(change)
        answer = self.write("POST", f"/memory/{id_}/supersede", {"text": new.content})
        self.ledger.acknowledge(change, [answer["new_id"], id_])

    def change(self, change: Change, method: str, path: str, body: Any = None, ids: Sequence[str] = ()) -> None:
        self.ledger.begin(change)
        self.write(method, path, body)
        self.ledger.acknowledge(change, ids)


class Facts(Memories):
    """Sets the facts of memories; a deleted memory takes its facts along."""

    def step(self) -> None:
        chosen = self.chosen("memory")
        if chosen is None or self.grows("memory"):
            self.add(1)
            return
        item, id_ = chosen
        facts = tuple(one for one in self.ledger.of_kind("fact") if self.ledger.there[one] == id_)
        if self.dice.random() < 0.6:
            new = tuple(Item("fact", marked(self.dice, 4)) for _ in range(self.dice.randint(1, 3)))
            change = Change(facts, new)
            body = {"facts": [one.content for one in new]}
            self.change(change, "PUT", f"/memory/{id_}/facts", body, [id_] * len(new))
        else:
            self.change(Change((item, *facts)), "DELETE", f"/memory/{id_}")


class Messages(Memories):
    """Says, edits and deletes messages of an agent, in a few sessions."""

    def step(self) -> None:
        chosen = self.chosen("message")
        if chosen is None or self.grows("message"):
            self.add(1 if self.dice.random() < 0.5 else self.dice.randint(2, 8))
            return
        item, id_ = chosen
        path = f"/messages/{TALKER}/{id_}"
        if self.dice.random() < 0.4:
            new = Item("message", marked(self.dice))
            self.change(Change((item,), (new,)), "PATCH", path, {"content": new.content}, [id_])
        else:
            self.change(Change((item,)), "DELETE", path)

    def add(self, number: int) -> None:
        items = tuple(Item("message", marked(self.dice)) for _ in range(number))
        said: list[dict[str, Any]] = [{"role": "user", "content": item.content} for item in items]
        where = {"agent_name": TALKER, "session_id": f"session-{self.dice.randint(1, 5)}"}
        path, body = (
            ("/messages", {**where, **said[0]}) if number == 1 else ("/messages/batch", {**where, "messages": said})
        )
        repeat = self.once(path, body)
        change = Change(added=items, repeat=repeat)
        self.ledger.begin(change)
        self.ledger.acknowledge(change, ids_in(self.write("POST", path, body, once=repeat.key)))


class Blocks(Memories):
    """Creates, updates and deletes the blocks of an agent."""

    def step(self) -> None:
        chosen = self.chosen("block")
        if chosen is None or self.grows("block"):
            label = f"label-{self.seed}-{next(self.numbers)}"
            value = marked(self.dice)
            change = Change(added=(Item("block", f"{label}={value}"),))
            body = {"agent_name": BLOCKER, "label": label, "value": value}
            self.ledger.begin(change)
            self.ledger.acknowledge(change, [self.write("POST", "/memory-blocks", body)["id"]])
            return
        item, id_ = chosen
        label = item.content.partition("=")[0]
        if self.dice.random() < 0.6:
            value = marked(self.dice)
            change = Change((item,), (Item("block", f"{label}={value}"),))
            self.change(change, "PUT", f"/memory-blocks/{BLOCKER}/{label}", {"value": value}, [id_])
        else:
            self.change(Change((item,)), "DELETE", f"/memory-blocks/{BLOCKER}/{label}")


class Keys(Memories):
    """Creates and revokes keys, and keeps their secrets."""

    secrets: dict[str, str]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.secrets = {}

    def step(self) -> None:
        chosen = self.chosen("key")
        if chosen is None or self.grows("key"):
            name = f"client {marked(self.dice, 0)}"
            change = Change(added=(Item("key", name),))
            self.ledger.begin(change)
            answer = self.write("POST", "/api/keys", {"name": name, "role": "read-only", "namespace": "default"})
            self.secrets[name] = answer["key"]
            self.ledger.acknowledge(change, [answer["id"]])
        else:
            item, id_ = chosen
            self.change(Change((item,), (Item("revoked", item.content),)), "DELETE", f"/api/keys/{id_}", ids=[id_])


class Observations(Memories):
    """Stores entities of the knowledge graph, each with one observation."""

    def step(self) -> None:
        seen = marked(self.dice, 4)
        body = {"entities": [{"name": f"entity-{seen[-8:]}", "entity_type": "thing", "observations": [seen]}]}
        change = Change(added=(Item("observation", seen),))
        self.ledger.begin(change)
        self.write("POST", "/knowledge-graph", body, namespace=KNOWN)
        self.ledger.acknowledge(change)
        self.stop.wait(PAUSE_S)


class Erasures(JobWriter):
    """Stores a session of messages, a memory and a block of an agent, and erases one of them for good."""

    CHOICES: ClassVar = ("session_id", "source", "block", "memory_id")

    def step(self) -> None:
        self.erase(*self.store(self.dice.choice(self.CHOICES)))

    def store(self, chooses: str) -> tuple[dict[str, object], tuple[Item, ...]]:
        """Store items, and return the part of the agent's data that they are."""
        name = f"{self.seed}-{next(self.numbers)}"
        match chooses:
            case "session_id":
                items = tuple(Item("message", marked(self.dice)) for _ in range(3))
                said = [{"role": "user", "content": item.content} for item in items]
                self._store(items, "/messages/batch", {"agent_name": FORGOTTEN, "session_id": name, "messages": said})
                return {"session_id": name}, items
            case "block":
                value = marked(self.dice)
                items = (Item("block", f"{name}={value}"),)
                self._store(items, "/memory-blocks", {"agent_name": FORGOTTEN, "label": name, "value": value})
                return {"block": name}, items
        items = (Item("memory", marked(self.dice)),)
        [id_] = self._store(items, "/memory/add", {"text": items[0].content, "source": name}, FORGOTTEN)
        return ({"source": name} if chooses == "source" else {"memory_id": id_}), items

    def _store(self, items: tuple[Item, ...], path: str, body: Any, namespace: str | None = None) -> list[object]:
        change = Change(added=items)
        self.ledger.begin(change)
        ids = ids_in(self.write("POST", path, body, namespace=namespace))
        self.ledger.acknowledge(change, ids)
        return ids

    def erase(self, part: dict[str, object], items: tuple[Item, ...], *, backups: bool = True) -> None:
        change = Change(items, erases=True, atomic=False)
        self.ledger.begin(change)
        body = {"selector": {"agent_name": FORGOTTEN, **part}, "confirm": True, "backups": backups}
        answer = self.write("POST", "/erase?wait_s=5", body)
        if "job_id" in answer:
            self.ledger.accept(change, answer["job_id"])
        else:
            self.ledger.acknowledge(change, cleared=answer["files_cleared"])


class Imports(JobWriter):
    """Imports files; their jobs must go on after a kill, and store each line once."""

    def step(self) -> None:
        if not self.may_submit:
            return
        items = tuple(Item("memory", marked(self.dice)) for _ in range(self.dice.randint(5, 40)))
        lines = "\n".join(json.dumps({"text": item.content, "source": f"{SOURCE}/import"}) for item in items)
        change = Change(added=items, atomic=False)
        self.ledger.begin(change)
        status, answer = self.client.send_lines("/import?no_backup=true&wait_s=0", lines)
        if status not in DONE:
            self.ledger.refuse(change)
            if status != HTTPStatus.TOO_MANY_REQUESTS:
                raise ServiceFailed(f"an import was answered {status}: {answer}")
        elif "job_id" in answer:
            self.ledger.accept(change, answer["job_id"])
        else:
            self.ledger.acknowledge(change)


class Extractions(JobWriter):
    """Sends transcripts to a scripted model, which takes every sentence for a fact to add."""

    def step(self) -> None:
        if not self.may_submit:
            return
        items = tuple(Item("memory", f"The {marked(self.dice, 6)} is ready.") for _ in range(self.dice.randint(1, 3)))
        change = Change(added=items, atomic=False)
        transcript = json.dumps([{"role": "user", "content": item.content} for item in items])
        self.ledger.begin(change)
        body = {"messages": transcript, "source": f"{SOURCE}/extract"}
        self.ledger.accept(change, self.write("POST", "/memory/extract", body)["job_id"])


class Descriptions(JobWriter):
    """Says messages about a concept, and has the scripted model describe the concepts of their session."""

    def step(self) -> None:
        if not self.may_submit:
            return
        session = f"{self.seed}-{next(self.numbers)}"
        item = Item("message", f"Alice moved to Lisbon with {marked(self.dice, 4)}")
        change = Change(added=(item,))
        body = {"agent_name": KNOWN, "session_id": session, "role": "user", "content": item.content}
        self.ledger.begin(change)
        self.ledger.acknowledge(change, [self.write("POST", "/messages", body)["id"]])
        change = Change(atomic=False)
        self.ledger.begin(change)
        answer = self.write("POST", f"/agents/{KNOWN}/graph/describe?wait_s=0", {"session_id": session, "limit": 3})
        self.ledger.acknowledge(change)
        claim = Change(added=(Item("claim", answer["job_id"]),), atomic=False)
        self.ledger.begin(claim)
        self.ledger.accept(claim, answer["job_id"], KNOWN)


class Backups(JobWriter):
    """Makes backups, which erasures must rewrite."""

    def step(self) -> None:
        self.stop.wait(self.dice.uniform(0.2, 1.0))
        self.write("POST", "/backup", {"prefix": "faults"})


@dataclass(slots=True)
class Reembeds(JobWriter):
    """Changes the embedding model now and then."""

    models: Sequence[str] = ()

    def step(self) -> None:
        if self.stop.wait(self.dice.uniform(0.5, 2.0)) or not self.may_submit:
            return
        change = Change(atomic=False)
        self.ledger.begin(change)
        answer = self.write("POST", "/maintenance/reembed?wait_s=0", {"model": self.dice.choice(self.models)})
        self.ledger.accept(change, answer["job_id"])
