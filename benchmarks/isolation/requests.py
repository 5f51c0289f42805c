"""Random requests for every operation of `/openapi.json`, so that new routes are included automatically.

Texts, sources and ids are not random letters: they are the caller's own, the other's, and what looks like either.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

WORDS = "amber birch cedar delta ember fjord grove harbor island jasper kettle lagoon meadow nectar orchid".split()
SOURCES_EACH = 12
"""Sources that one caller writes to: so few that there is something to find, merge and delete in each."""

RARELY = (
    *("snapshot", "backup", "restore", "deduplicate", "import", "reembed", "build", "sync", "DELETE /agents"),
    *("compact", "consolidate", "prune", "enforce-policies", "conflicts/resolve"),
)
"""Parts of routes that copy, sweep or empty the whole store; they are asked a tenth as often as others."""

RARE_WEIGHT = 0.1

MISSING_ID = 10**9

TEXTS = frozenset({"text", "new_text", "merged_text", "messages", "content", "value", "title", "description"})
NAMES = {"session_id": 4, "exclude_session_id": 4, "user": 3, "label": 4}
"""Names within an agent, and how many: both parties use the same."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    template: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"

    @property
    def words(self) -> str:
        """All that the request says, in which an answer may repeat it."""
        return f"{self.path} {'' if self.body is None else self.body.decode()}"


@dataclass(slots=True)
class Pool:
    """What the two callers know of each other's ids and texts: enough to ask for them by name."""

    ids: dict[str, list[int]] = field(default_factory=dict)
    uuids: list[str] = field(default_factory=list)
    tokens: dict[str, list[str]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    webhooks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Party:
    """One caller: its prefix, and the mark with which the tokens of its texts begin.

    :param agent: The agent whose whole namespace its key is for; without it, the key is for the prefix.
    """

    name: str
    prefix: str
    mark: str
    agent: str = ""

    def key(self) -> dict[str, object]:
        """What its key is made from."""
        reach: dict[str, object] = {"namespace": self.agent} if self.agent else {"prefixes": [self.prefix]}
        return {"name": self.name, "role": "read-write", **reach}


class Requests:
    """Makes requests of one party."""

    def __init__(self, document: Mapping[str, Any], me: Party, other: Party, pool: Pool, dice: random.Random) -> None:
        self._schemas = document["components"]["schemas"]
        self._operations = [
            (method.upper(), template, operation)
            for template, methods in document["paths"].items()
            for method, operation in methods.items()
        ]
        self._weights = [
            RARE_WEIGHT if any(part in f"{method} {template}" for part in RARELY) else 1.0
            for method, template, _ in self._operations
        ]
        self._me, self._other, self._pool, self._dice = me, other, pool, dice

    def draw(self) -> Request:
        [(method, template, operation)] = self._dice.choices(self._operations, self._weights)
        return self._request(method, template, operation)

    def draw_of(self, operation: str) -> Request:
        """:param operation: Its method and template."""
        [drawn] = [one for one in self._operations if f"{one[0]} {one[1]}" == operation]
        return self._request(*drawn)

    def refill(self, count: int) -> Request:
        """Memories in sources of one's own."""
        memories = [{"text": self._text(), "source": self._own_source()} for _ in range(count)]
        body = json.dumps({"memories": memories}).encode()
        return Request("POST", "/memory/add-batch", "/memory/add-batch", body)

    def _request(self, method: str, template: str, operation: Mapping[str, Any]) -> Request:
        path, query = template, {}
        for parameter in operation.get("parameters", ()):
            name, place = parameter["name"], parameter["in"]
            if place == "path":
                path = path.replace(f"{{{name}}}", quote(str(self.value(name, parameter["schema"])), safe=""))
            elif place == "query" and (parameter.get("required") or self._dice.random() < 0.5):
                query[name] = self.value(name, parameter["schema"])
        query = {name: value for name, value in query.items() if value is not None}
        path += f"?{urlencode(query)}" if query else ""
        content = operation.get("requestBody", {}).get("content", {})
        if not content:
            return Request(method, template, path)
        content_type, described = next(iter(content.items()))
        if content_type == "application/json":
            body = json.dumps(self.value("body", described["schema"])).encode()
        else:
            lines = [{"text": self._text(), "source": self._source()} for _ in range(self._dice.randint(1, 3))]
            body = "\n".join(map(json.dumps, lines)).encode()
        return Request(method, template, path, body, content_type)

    def value(self, name: str, schema: Mapping[str, Any]) -> Any:
        if "$ref" in schema:
            return self.value(name, self._schemas[schema["$ref"].rsplit("/", 1)[-1]])
        if "anyOf" in schema:
            return self.value(name, self._dice.choice(schema["anyOf"]))
        if "enum" in schema:
            return self._dice.choice(schema["enum"])
        match schema.get("type"):
            case "object":
                return self._object(schema)
            case "array":
                least = max(1, schema.get("minItems", 0))
                return [self.value(name, schema.get("items", {})) for _ in range(self._dice.randint(least, least + 2))]
            case "integer":
                return self._integer(name, schema)
            case "number":
                return round(self._dice.uniform(schema.get("minimum", 0.0), schema.get("maximum", 1.0)), 3)
            case "boolean":
                return self._dice.random() < 0.5
            case "string":
                return self._string(name)
        return None

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        chosen = {
            name: self.value(name, described)
            for name, described in properties.items()
            if name in required or self._dice.random() < 0.3
        }
        return {name: value for name, value in chosen.items() if value is not None}

    def _integer(self, name: str, schema: Mapping[str, Any]) -> int:
        if name in {"ids", "id"} or name.endswith(("_id", "_ids")):
            known = self._pool.ids[self._dice.choice([self._me.name, self._me.name, self._other.name])]
            return self._dice.choice(known[-400:]) if known and self._dice.random() < 0.95 else MISSING_ID
        if name == "deadline_ms":
            # What a shorter one leaves out of an answer depends on the speed of the machine.
            return int(schema["maximum"])
        least = int(schema.get("minimum", 0))
        most = least + self._dice.choice([3, 10, 10, 100])
        return self._dice.randint(least, int(min(most, schema.get("maximum", most))))

    def _string(self, name: str) -> str:
        if "source" in name or "prefix" in name or "pattern" in name:
            return self._source()
        if name in TEXTS:
            return self._text()
        if name == "query":
            return self._query()
        if name in NAMES:
            return f"{name}-{self._dice.randrange(NAMES[name])}"
        if name == "agent_name" or (name == "name" and self._me.agent):
            return self._me.agent if self._dice.random() < 0.85 else self._other.agent or "default"
        if name == "message_id":
            return self._dice.choice([*self._pool.uuids[-200:], "00000000-0000-4000-8000-000000000000"])
        if name in {"since", "until", "reference_date", "document_at", "created_at", "as_of"}:
            return self._dice.choice(["2001-01-01", "2025-06-01T12:00:00Z", "2100-01-01"])
        if name == "webhook_id":
            return self._dice.choice(self._pool.webhooks[-20:] or ["nobody"])
        if name == "url":
            return f"https://{self._me.mark}.hooks.invalid/"
        if name == "events":
            return "memory.added"
        if name == "key" or name == "entity_key":
            return f"key-{self._dice.randrange(40)}"
        return self._dice.choice([*self._pool.names[-50:], "nobody", "default"])

    def _source(self) -> str:
        """Mostly narrow, since some routes delete what they match."""
        draw = self._dice.random()
        if draw < 0.80:
            return self._own_source()
        if draw < 0.94:
            return f"{self._other.prefix}/{self._dice.randrange(SOURCES_EACH)}"
        if draw < 0.995:
            climbing = f"{self._me.prefix}/../{self._other.prefix}/1"
            return self._dice.choice([climbing, f"/{SOURCES_EACH - 1}", f"{self._other.prefix}x"])
        return self._dice.choice(["proj", "proj/", self._me.prefix, self._other.prefix])

    def _own_source(self) -> str:
        return f"{self._me.prefix}/{self._dice.randrange(SOURCES_EACH)}"

    def _text(self) -> str:
        """Some words and a token of one's own; the words are few, so that many texts are nearly the other's."""
        token = f"{self._me.mark}{self._dice.getrandbits(64):016x}"
        self._pool.tokens[self._me.name].append(token)
        return f"{self._words()} {token}"

    def _query(self) -> str:
        """Some words, and now and then a token of the other's."""
        theirs = self._pool.tokens[self._other.name]
        named = f" {self._dice.choice(theirs[-400:])}" if theirs and self._dice.random() < 0.2 else ""
        return self._words() + named

    def _words(self) -> str:
        return " ".join(self._dice.choices(WORDS, k=self._dice.randint(1, 4)))
