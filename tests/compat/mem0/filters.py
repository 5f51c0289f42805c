"""A reference evaluator of filters in Python, and a generator of random filters."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hypothesis import strategies as st

from souvenir.compat.mem0.filters import OPERATORS
from souvenir.core.types import Memory

NAMES = ("color", "size", "source", "deep", "deep.x")
WORDS = ("red", "Red", "blue", "1", "", "é", "a*b")
NUMBERS = (0, 1, 2, -3, 1.5, 2.0)

scalars = st.sampled_from([*WORDS, *NUMBERS, True, False])
values = scalars | st.none() | st.lists(scalars, max_size=3)
metadata = st.dictionaries(
    st.sampled_from(NAMES), values | st.dictionaries(st.sampled_from(["x", "y"]), values, max_size=2), max_size=3
)

_texts = st.sampled_from([word for word in WORDS if word])
_metadata_test = st.one_of(
    scalars.map(lambda value: value),
    st.none(),
    st.just("*"),
    st.sampled_from(["eq", "ne"]).flatmap(lambda op: scalars.map(lambda value: {op: value})),
    st.sampled_from(["in", "nin"]).flatmap(lambda op: st.lists(scalars, max_size=3).map(lambda of: {op: of})),
    st.sampled_from(["gt", "gte", "lt", "lte"]).flatmap(
        lambda op: st.sampled_from([*WORDS, *NUMBERS]).map(lambda value: {op: value})
    ),
    st.sampled_from(["contains", "icontains"]).flatmap(lambda op: _texts.map(lambda value: {op: value})),
)
_paths = st.sampled_from([*NAMES[:-1], "deep.x", "deep.y", "color.x"])
_names = st.sampled_from(["alice", "bob", "carol"])
_entity_test = st.one_of(
    _names,
    st.none(),
    st.just("*"),
    st.lists(_names, max_size=2).map(lambda of: {"in": of}),
    st.lists(_names, max_size=2).map(lambda of: {"nin": of}),
    _names.map(lambda of: {"ne": of}),
    st.sampled_from(["a", "LI", "ob"]).map(lambda of: {"icontains": of}),
)
_word_test = st.sampled_from(["tea", "Tea", "dog", "zzz"]).flatmap(
    lambda word: st.sampled_from(["contains", "icontains", "ne"]).map(lambda op: {op: word})
)
_tag_test = st.one_of(
    st.sampled_from(["food", "FOOD", "pets", "none"]),
    st.just("*"),
    st.lists(st.sampled_from(["food", "pets"]), max_size=2).map(lambda of: {"in": of}),
    st.just({"ne": "food"}),
)
_time_test = st.sampled_from(["2024-01-01", "2024-06-01T00:00:00Z", 1_700_000_000]).flatmap(
    lambda at: st.sampled_from(["gt", "gte", "lt", "lte", "eq", "ne"]).map(lambda op: {op: at})
)
_ids = st.sampled_from(["1", "2", "5", "x"])
tests = st.one_of(
    st.tuples(_paths, _metadata_test).map(lambda of: {f"metadata.{of[0]}": of[1]}),
    st.tuples(st.sampled_from(NAMES), _metadata_test).map(lambda of: {"metadata": {of[0]: of[1]}}),
    st.tuples(st.sampled_from(["x", "y"]), _metadata_test).map(lambda of: {"metadata": {"deep": {of[0]: of[1]}}}),
    st.tuples(st.sampled_from(["user_id", "run_id"]), _entity_test).map(lambda of: {of[0]: of[1]}),
    _word_test.map(lambda of: {"keywords": of}),
    _tag_test.map(lambda of: {"categories": of}),
    _time_test.map(lambda of: {"created_at": of}),
    st.lists(_ids, max_size=3).map(lambda of: {"memory_ids": {"in": of}}),
    st.sampled_from(["mine", "other", "*"]).map(lambda of: {"agent_id": of}),
)
filters = st.recursive(
    tests,
    lambda inner: st.tuples(st.sampled_from(["AND", "OR", "NOT"]), st.lists(inner, max_size=3)).map(
        lambda of: {of[0]: of[1]}
    ),
    max_leaves=6,
)

MISSING = object()


def fits(wanted: Any, memory: Memory, shown: dict[str, Any], user: str | None, agent: str) -> bool:
    """:param shown: The metadata as its caller gave it."""

    def member(name: str, value: Any) -> bool:
        match name:
            case "AND" | "OR" | "NOT":
                each = [fits(one, memory, shown, user, agent) for one in value]
                return all(each) if name == "AND" else any(each) is (name == "OR")
            case "metadata":
                return _meets(shown, value)
            case _ if name.startswith("metadata."):
                return _holds(_at(shown, name.removeprefix("metadata.")), value)
            case "user_id":
                return _holds(MISSING if user is None else user, value)
            case "run_id":
                return _holds(memory.metadata.get("run_id", MISSING), value)
            case "agent_id":
                return value in ("*", agent)
            case "keywords":
                return _holds(
                    memory.text, {"contains" if op == "eq" else op: of for op, of in value.items()}, words=True
                )
            case "categories":
                return _tagged({tag.casefold() for tag in memory.tags}, value)
            case "created_at":
                return all(_timed(memory.occurred_at, op, of) for op, of in value.items())
            case _:
                return str(memory.id) in value["in"]

    return all(member(name, value) for name, value in wanted.items())


def _meets(found: Any, test: Any) -> bool:
    """Like `_holds`; an object of names that are no operators tests what is below, and a dot is part of a name."""
    if not isinstance(test, dict) or test.keys() & OPERATORS:
        return _holds(MISSING if found is None else found, test)
    below = found if isinstance(found, dict) else {}
    return all(_meets(below.get(name), inner) for name, inner in test.items())


def _at(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = found.get(name, MISSING) if isinstance(found, dict) else MISSING
    return MISSING if found is None else found


def _holds(found: Any, test: Any, *, words: bool = False) -> bool:
    if test is None:
        return found is MISSING
    if test == "*" and isinstance(test, str):
        return found is not MISSING
    if not isinstance(test, dict):
        return _same(found, test)
    [(op, of)] = test.items()
    match op:
        case "eq":
            return _same(found, of)
        case "ne":
            return not (of in found if words else _same(found, of))
        case "in":
            return any(_same(found, one) for one in of)
        case "nin":
            return not any(_same(found, one) for one in of)
        case "contains":
            return (
                of in found if isinstance(found, str) else isinstance(found, list) and any(_same(x, of) for x in found)
            )
        case "icontains":
            if isinstance(found, str):
                return of.lower() in found.lower()
            return isinstance(found, list) and any(_same(x, of) for x in found)
        case _:
            return _kind(found) == _kind(of) in ("text", "number") and _ordered(found, op, of)


def _ordered(found: Any, op: str, of: Any) -> bool:
    return bool({"gt": found > of, "gte": found >= of, "lt": found < of, "lte": found <= of}[op])


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "number" if isinstance(value, int | float) else "other"


def _same(found: Any, of: Any) -> bool:
    return _kind(found) == _kind(of) != "other" and found == of


def _tagged(tags: set[str], test: Any) -> bool:
    if test == "*":
        return bool(tags)
    if isinstance(test, str):
        return test.casefold() in tags
    [(op, of)] = test.items()
    return any(one in tags for one in of) if op == "in" else of not in tags


def _timed(at: datetime, op: str, of: Any) -> bool:
    other = datetime.fromtimestamp(of, at.tzinfo) if isinstance(of, int) else datetime.fromisoformat(of)
    other = other.replace(tzinfo=at.tzinfo) if other.tzinfo is None else other
    return {"eq": at == other, "ne": at != other}[op] if op in ("eq", "ne") else _ordered(at, op, other)
