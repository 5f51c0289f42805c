"""Replacing values of a JSON object without touching the rest of its text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.compat.proxy import json_bodies
from souvenir.compat.proxy.json_bodies import JsonBody

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
)
SPACES = st.sampled_from(["", " ", "\n", "\t ", "\r\n"])


def reference(text: bytes) -> Any:
    """Return the object that `json.loads` reads; None for any other value."""
    try:
        read = json.loads(text)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def read(text: bytes) -> Any:
    try:
        return JsonBody(text).values
    except ValueError:
        return None


@given(
    st.dictionaries(NAMES, VALUES, max_size=5), SPACES, st.booleans(), st.sampled_from(["utf-8", "utf-16", "utf-8-sig"])
)
def test_a_body_has_the_values_of_its_json(values: dict[str, Any], space: str, ascii: bool, encoding: str):
    text = json.dumps(values, ensure_ascii=ascii, separators=(f"{space},{space}", f"{space}:{space}"))
    body = JsonBody(f"{space}{text}{space}".encode(encoding))
    assert body.values == values
    assert body.replaced(values) != b""
    assert json.loads(body.replaced({**values, "new": [1]})) == {**values, "new": [1]}


@given(st.dictionaries(NAMES, VALUES, max_size=3), st.data())
def test_what_is_no_json_object_is_refused(values: dict[str, Any], data: st.DataObject):
    text = json.dumps(values)
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 2)))
    broken = (
        f"{text[:at]}{data.draw(st.sampled_from(['', ',', ':', '}', ']', '[', '{', '1', chr(34), ' ']))}{text[end:]}"
    )
    assert read(broken.encode()) == reference(broken.encode())


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"7", b"{", b"{}}", b'{"a":1,}', b'{,"a":1}', b'{"a":[1,]}', b'{"a" 1}', b"\xff"]
)
def test_texts_that_are_nearly_objects_are_refused(text: bytes):
    with pytest.raises(ValueError, match=r"JSON|There is no|codec|Expecting"):
        JsonBody(text)


def test_all_that_is_not_replaced_keeps_its_form():
    text = '{ "a" : 1.0,"big":1e400, "é":"\\u00e9", "list": [ {"x":1E2}, {"x":NaN,"x":2} ,7.0], "a":-0 }'
    body = JsonBody(text.encode())
    assert body.replaced(body.values) == text.encode()
    longer = [*body.values["list"][:1], {"y": "½"}, *body.values["list"][1:2]]
    assert body.replaced({**body.values, "list": longer, "more": None}).decode() == (
        '{ "a" : 1.0,"big":1e400, "é":"\\u00e9", "list": [{"x":1E2},{"y":"\\u00bd"},{"x":NaN,"x":2}], '
        '"a":-0,"more":null }'
    )


def test_of_members_with_the_same_name_the_last_one_is_replaced():
    body = JsonBody(b'{"m":[{"a":1}],"m":[{"b":2}]}')
    assert body.values == {"m": [{"b": 2}]}
    assert body.replaced({"m": [{"new": 1}, *body.values["m"]]}) == b'{"m":[{"a":1}],"m":[{"new":1},{"b":2}]}'
    assert JsonBody(b" {} ").replaced({"a": 1}) == b' {"a":1} '


def test_a_new_number_without_a_form_in_json_is_refused():
    with pytest.raises(ValueError, match="Out of range"):
        JsonBody(b'{"a":1}').replaced({"a": float("inf")})


def test_a_list_that_is_too_long_to_be_parsed_one_by_one_has_the_same_values(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(json_bodies, "MAX_ELEMENTS", 2)
    body = JsonBody(b'{"a":[{"x":1.0},{"x":2.0}],"b":[{"x":1.00},2,3],"c":1.0}')
    assert body.values == {"a": [{"x": 1}, {"x": 2}], "b": [{"x": 1}, 2, 3], "c": 1}
    longer = {**body.values, "a": [*body.values["a"], 3], "b": [*body.values["b"], 4]}
    assert body.replaced(longer) == b'{"a":[{"x":1.0},{"x":2.0},3],"b":[{"x":1.0},2,3,4],"c":1.0}'
