"""Parsing a model's text: wrapping is tolerated, content is never guessed."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from souvenir.models.llm.parsing import Unreadable, value_of
from tests.models.llm.conftest import Fact, FactList, Lenient

ONE = '{"facts": ["use {braces} and [brackets]", "say \\"so\\""]}'
FACTS = ["use {braces} and [brackets]", 'say "so"']


class Numbers(BaseModel):
    numbers: list[int]
    ratio: float = 0.0


class Aliased(BaseModel):
    found: list[str] = Field(alias="facts")


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"\ufeff  {ONE}\n",
        f"```json\n{ONE}\n```",
        f"```\n{ONE}\n```\nThat is all.",
        f"```json\n{ONE}",
        f"Here's what I found, 5\" apart:\n\n{ONE}\n\nLet me know if you need more!",
        f"<think>Maybe {{}} or [1]? No.</think>\n{ONE}",
        f'\n<thinking>\n{{"facts": []}}\n</thinking>{ONE}',
        '{"facts": ["use {braces} and [brackets]", "say \\"so\\"",],}',
        '{"facts": ["use {braces} and [brackets]", "say \\"so\\"" , ] }',
        '["use {braces} and [brackets]", "say \\"so\\""]',
        f"The list: {json.dumps(FACTS)}",
    ],
)
def test_wrapped_json_is_accepted(text):
    assert value_of(text, Lenient).facts == FACTS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("There are no facts.", "it holds no JSON"),
        ("null", "it holds no JSON"),
        ('{"facts": ["a"', "it breaks off"),
        ('```json\n{"facts": ["a"\n```', "it breaks off"),
        ('<think>Is it {"facts": []}', "it breaks off"),
        ('{"facts": []} or {"facts": ["a"]}', "it holds more than one JSON value"),
        ('See [1]. {"facts": ["a"]}', "it holds more than one JSON value"),
        ('```json\n{}\n```\n```json\n{"facts": ["a"]}\n```', "it holds more than one JSON value"),
        ("{'facts': ['a']}", "it is not JSON"),
        ('{"facts": ["a" "b"]}', "it is not JSON"),
        ('{"facts": ["a"]} // none', ""),
        ('{"facts": [] // none\n}', "it is not JSON"),
        ('{"facts": ["a"], "facts": []}', "one key twice"),
        ('{"facts": ["a\\u0000"]}', "characters that are none"),
        ('{"facts": ["a\0"]}', "characters that are none"),
        ('{"facts": ["\\ud800"]}', "characters that are none"),
        ('{"facts": [], "\\udfff": 1}', "characters that are none"),
        ('{"facts": [NaN]}', "number that is none"),
        ('{"facts": [], "n": 1e999}', "number that is none"),
        ('{"facts": [], "n": ' + "9" * 5000 + "}", "number that is none"),
        ('{"facts": [], "n": 9223372036854775808}', "number that is none"),
        ("[" * 100_000, "it breaks off"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"facts": ' + '{"a":' * 100_000 + "1" + "}" * 100_001, "nested too deeply"),
        ("{}", "a list is missing"),
        ('{"fact": ["a"]}', "a list is missing"),
        ('{"facts": null}', "does not fit Lenient"),
        ('{"facts": "none"}', "does not fit Lenient"),
        ('{"facts": {"a": 1}}', "does not fit Lenient"),
        ('{"facts": [' + "1," * 600_000 + "1]}", "it is too long"),
    ],
    ids=lambda value: value[:24],
)
def test_ambiguous_or_missing_json_is_unreadable(text, reason):
    if not reason:
        assert value_of(text, Lenient).facts == ["a"]
        return
    with pytest.raises(Unreadable) as unreadable:
        value_of(text, Lenient)
    assert reason in unreadable.value.fault.reason


def test_a_bare_list_is_refused_for_a_shape_with_several_lists():
    class Two(BaseModel):
        facts: list[str]
        notes: list[str] = []

    with pytest.raises(Unreadable, match="not a JSON object"):
        value_of('["a"]', Two)
    with pytest.raises(Unreadable, match="a list is missing"):
        value_of('{"facts": ["a"]}', Two)


def test_a_bare_list_fills_the_list_by_its_alias():
    assert value_of('["a"]', Aliased).found == ["a"]
    assert value_of('{"facts": ["a"]}', Aliased).found == ["a"]


def test_numbers_are_not_converted():
    assert value_of('{"numbers": [9223372036854775807, -1], "ratio": 0.5}', Numbers).numbers == [2**63 - 1, -1]


def test_a_fault_is_located_for_the_model_and_quotes_nothing_to_users():
    with pytest.raises(Unreadable) as unreadable:
        value_of('{"facts": [{"text": "a", "certain": "the secret"}, {}]}', FactList)
    fault = unreadable.value.fault
    assert fault.reason == "it does not fit FactList (2 faults, the first: bool_parsing)"
    assert "facts.0.certain: " in fault.details
    assert "facts.1.text: Field required" in fault.details
    assert "the secret" not in fault.reason


facts = st.lists(st.text(max_size=20).filter(lambda text: "\0" not in text), min_size=1, max_size=4)
prose = st.text(alphabet="ab \"'\n.,:`", max_size=20)


@given(facts, prose, prose)
def test_json_within_prose_is_parsed(texts, before, after):
    written = before + json.dumps({"facts": texts}, ensure_ascii=False) + after
    assert value_of(written, Lenient).facts == texts


@given(facts, prose, st.data())
def test_a_truncated_answer_is_never_parsed(texts, before, data):
    whole = json.dumps({"facts": texts})
    kept = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(Unreadable):
        value_of(before + whole[:kept], Lenient)


def test_an_answer_with_a_wrong_character_is_never_an_empty_result():
    outcomes: Counter[bool] = Counter()

    @given(facts, st.data())
    def unreadable_or_not_empty(texts: list[str], data: st.DataObject) -> None:
        whole = json.dumps({"facts": texts})
        place = data.draw(st.integers(0, len(whole) - 1))
        wrong = whole[:place] + data.draw(st.sampled_from(["", *'{}[]",:\\ 0a'])) + whole[place + 1 :]
        try:
            read = value_of(wrong, Lenient)
        except Unreadable:
            outcomes[False] += 1
        else:
            assert read.facts
            outcomes[True] += 1

    unreadable_or_not_empty()
    assert outcomes.keys() == {True, False}


@given(st.text())
def test_any_text_is_parsed_or_unreadable(text):
    with suppress(Unreadable):
        assert isinstance(value_of(text, FactList), FactList)


def test_a_large_answer_is_parsed_quickly():
    texts = ['quote " backslash \\ brace { ' * 10] * 2000
    assert value_of(json.dumps({"facts": texts}), Lenient).facts == texts
    assert Fact(text="a").certain
