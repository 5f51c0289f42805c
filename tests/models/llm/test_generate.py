"""One prompt, one typed answer, with every provider's API."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from souvenir.core.errors import InvalidRequest, LLMOutputUnusable, LLMRefused
from souvenir.core.settings import ExtractProvider, Settings
from souvenir.models.llm.provider import provider_of
from tests.models.llm.conftest import GOOD, PROMPT, SECRET_TEXT, WIRES, FactList, Lenient, Provide
from tests.vendors.llm import KEY, LLMVendor, fails, says

FACTS = FactList.model_validate(GOOD)


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_has_the_requested_shape(llm_vendor: LLMVendor, provide: Provide, wire):
    llm_vendor.replies.append(says(GOOD, input_tokens=321, output_tokens=12))
    provider = provide(wire)
    generated = provider.generate(PROMPT, FactList)
    assert generated.value == FACTS
    assert (generated.attempts, generated.repaired, generated.model) == (1, False, "scripted-1")
    assert (generated.usage.input_tokens, generated.usage.output_tokens) == (321, 12)
    assert (provider.name, provider.model, provider.status()) == (wire, "scripted-1", "healthy")


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_is_called_with_temperature_0_schema_and_key(llm_vendor: LLMVendor, provide: Provide, wire):
    llm_vendor.replies.append(GOOD)
    provide(wire, extract_max_tokens=777).generate(PROMPT, FactList)
    [request] = llm_vendor.requests
    assert (request.wire, request.prompt, request.key, request.max_tokens) == (wire, "facts", KEY, 777)
    assert request.user == PROMPT.user
    assert request.system.startswith(PROMPT.system)
    assert request.body.get("options", request.body)["temperature"] == 0
    assert not request.body.get("stream")
    assert request.schema is not None
    assert request.schema["required"] == ["facts"]
    assert json.dumps(request.schema, separators=(",", ":")) in request.system


@pytest.mark.parametrize("wire", WIRES)
def test_an_invalid_answer_is_sent_back_once_with_its_errors(llm_vendor: LLMVendor, provide: Provide, wire):
    llm_vendor.replies.extend([{"facts": [{"text": ""}]}, GOOD])
    generated = provide(wire).generate(PROMPT, FactList)
    assert generated.value == FACTS
    assert (generated.attempts, generated.repaired) == (2, True)
    assert (generated.usage.input_tokens, generated.usage.output_tokens) == (200, 40)
    first, second = llm_vendor.requests
    assert [turn["role"] for turn in second.turns] == ["user", "assistant", "user"]
    assert second.turns[0] == first.turns[0]
    assert second.turns[1]["content"] == '{"facts": [{"text": ""}]}'
    assert "facts.0.text: String should have at least 1 character" in second.turns[2]["content"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_second_invalid_answer_is_an_error(llm_vendor: LLMVendor, provide: Provide, wire):
    llm_vendor.replies.extend([f"I will not say {SECRET_TEXT}", {"facts": [{"text": ""}, {"certain": True}]}])
    provider = provide(wire)
    with pytest.raises(LLMOutputUnusable) as failure:
        provider.generate(PROMPT, FactList)
    assert len(llm_vendor.requests) == 2
    assert failure.value.reason == "it does not fit FactList (2 faults, the first: string_too_short)"
    assert json.loads(failure.value.raw) == {"facts": [{"text": ""}, {"certain": True}]}
    assert SECRET_TEXT not in str(failure.value)
    spent = failure.value
    assert (spent.attempts, spent.input_tokens, spent.output_tokens) == (2, 200, 40)
    assert provider.status() == "healthy"


def test_an_empty_answer_is_retried_without_an_empty_turn(llm_vendor: LLMVendor, provide: Provide):
    llm_vendor.replies.extend(["", GOOD])
    assert provide().generate(PROMPT, FactList).repaired
    [turn] = llm_vendor.requests[1].turns
    assert turn["role"] == "user"
    assert turn["content"].startswith(PROMPT.user)
    assert "it is empty" in turn["content"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_truncated_answer_is_requested_again_with_twice_the_tokens(llm_vendor: LLMVendor, provide: Provide, wire):
    llm_vendor.replies.extend([says('{"facts": [{"te', ending="length"), GOOD])
    generated = provide(wire, extract_max_tokens=500).generate(PROMPT, FactList)
    assert (generated.value, generated.attempts, generated.repaired) == (FACTS, 2, False)
    assert [request.max_tokens for request in llm_vendor.requests] == [500, 1000]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("text", ['{"facts": ["a', '{"facts": []}', "{}", "", "I think of {} and"])
def test_a_still_truncated_answer_is_an_error_even_if_it_parses(llm_vendor: LLMVendor, provide: Provide, wire, text):
    llm_vendor.replies.extend([says(text, ending="length")] * 2)
    with pytest.raises(LLMOutputUnusable, match="it was cut") as failure:
        provide(wire).generate(PROMPT, Lenient)
    assert failure.value.raw == text
    assert len(llm_vendor.requests) == 2


def test_a_model_limited_to_fewer_tokens_is_truncated(llm_vendor: LLMVendor, provide: Provide):
    llm_vendor.replies.extend(
        [says("{", ending="length"), fails(400, "max_tokens is too large: 8192. It supports at most 4096")]
    )
    with pytest.raises(LLMOutputUnusable, match="it was cut"):
        provide().generate(PROMPT, FactList)


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_a_refusal_of_the_model_is_not_retried(llm_vendor: LLMVendor, provide: Provide, wire):
    llm_vendor.replies.append(says(f"I cannot help with {SECRET_TEXT}", ending="refusal"))
    with pytest.raises(LLMRefused) as failure:
        provide(wire).generate(PROMPT, FactList)
    assert SECRET_TEXT not in str(failure.value)
    assert len(llm_vendor.requests) == 1


def test_without_the_setting_there_is_no_provider():
    assert provider_of(Settings()) is None


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"extract_provider": "openai"}, "Openai needs a key; set EXTRACT_API_KEY or OPENAI_API_KEY"),
        ({"extract_provider": "anthropic", "openai_api_key": KEY}, "set EXTRACT_API_KEY or ANTHROPIC_API_KEY"),
        ({"extract_provider": "openai", "extract_base_url": "gpu:8000"}, "EXTRACT_BASE_URL is not an address"),
        ({"extract_provider": "ollama", "ollama_base_url": "ftp://gpu"}, "OLLAMA_BASE_URL is not an address"),
        ({"extract_provider": "openai", "extract_api_key": "k\u00e9y"}, "holds signs that no key has"),
    ],
)
def test_incomplete_settings_name_the_one_to_correct(values, sentence):
    with pytest.raises(InvalidRequest, match=sentence):
        provider_of(Settings(**values))


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_the_base_url_of_a_vendors_sdk_gets_the_transcripts_and_its_key(
    llm_vendor: LLMVendor, monkeypatch: pytest.MonkeyPatch, wire: str
):
    monkeypatch.setenv(f"{wire.upper()}_BASE_URL", llm_vendor.url + ("/v1" if wire == "openai" else ""))
    monkeypatch.setenv(f"{wire.upper()}_API_KEY", KEY)
    llm_vendor.replies.append(says(GOOD))
    provider = provider_of(Settings(extract_provider=ExtractProvider(wire), extract_model="their-model"))
    assert provider is not None
    with closing(provider):
        provider.generate(PROMPT, FactList)
    [request] = llm_vendor.requests
    assert KEY in str(request.headers)
