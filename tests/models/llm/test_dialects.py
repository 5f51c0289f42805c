"""Parameters that a server rejects are omitted from then on; supported ones are used."""

from __future__ import annotations

import pytest

from souvenir.core.errors import LLMRejected
from tests.models.llm.conftest import GOOD, PROMPT, FactList, Provide
from tests.vendors.llm import LLMRequest, LLMVendor, fails, says


def mode_of(request: LLMRequest) -> str:
    body = request.body
    match request.wire:
        case "anthropic":
            return "schema" if "output_config" in body else "json" if "tools" in body else "text"
        case "ollama":
            return "text" if "format" not in body else "json" if body["format"] == "json" else "schema"
    return {"json_schema": "schema", "json_object": "json"}.get(body.get("response_format", {}).get("type"), "text")


REFUSALS = {
    "openai": [
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
        "'response_format.type' must be 'text'",
    ],
    "anthropic": ["output_config: Extra inputs are not permitted", "tool_choice: this model does not use tools"],
    "ollama": [
        "json: cannot unmarshal object into Go struct field ChatRequest.format of type string",
        "invalid JSON schema in format",
    ],
}


@pytest.mark.parametrize("wire", REFUSALS)
def test_a_server_without_schemas_falls_back_to_json_then_text_and_is_remembered(
    llm_vendor: LLMVendor, provide: Provide, wire
):
    provider = provide(wire)
    schema, json = REFUSALS[wire]
    llm_vendor.replies.extend([fails(400, schema), GOOD, GOOD])
    assert provider.generate(PROMPT, FactList).attempts == 2
    assert provider.generate(PROMPT, FactList).attempts == 1
    llm_vendor.replies.extend([fails(400, json), f"Here you are:\n```json\n{says(GOOD).text}\n```", GOOD])
    assert provider.generate(PROMPT, FactList).attempts == 2
    assert provider.generate(PROMPT, FactList).attempts == 1
    assert [mode_of(request) for request in llm_vendor.requests] == ["schema", *["json"] * 3, *["text"] * 2]
    assert "Its JSON Schema is:" in llm_vendor.requests[-1].system
    assert provider.status() == "healthy"


@pytest.mark.parametrize("wire", REFUSALS)
def test_a_model_that_rejects_temperature_is_called_without_it(llm_vendor: LLMVendor, provide: Provide, wire):
    provider = provide(wire)
    llm_vendor.replies.extend([fails(400, "Unsupported value: 'temperature' does not support 0"), GOOD, GOOD])
    assert provider.generate(PROMPT, FactList).attempts == 2
    provider.generate(PROMPT, FactList)
    asked = ["temperature" in request.body.get("options", request.body) for request in llm_vendor.requests]
    assert asked == [True, False, False]


def test_a_server_with_another_name_of_max_tokens_is_called_with_it(llm_vendor: LLMVendor, provide: Provide):
    provider = provide()
    advice = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    llm_vendor.replies.extend([fails(400, advice), GOOD, GOOD])
    assert provider.generate(PROMPT, FactList).attempts == 2
    provider.generate(PROMPT, FactList)
    names = [[name for name in request.body if name.startswith("max_")] for request in llm_vendor.requests]
    assert names == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]


@pytest.mark.parametrize("wire", REFUSALS)
def test_a_server_that_rejects_every_dialect_is_an_error(llm_vendor: LLMVendor, provide: Provide, wire):
    everything = "temperature max_tokens max_completion_tokens response_format json_schema"
    llm_vendor.script(lambda request: fails(400, everything))
    with pytest.raises(LLMRejected, match="refused the request"):
        provide(wire).generate(PROMPT, FactList)
    assert len(llm_vendor.requests) <= 5


def test_the_context_window_of_ollama_fits_prompt_and_answer_and_never_shrinks(llm_vendor: LLMVendor, provide: Provide):
    provider = provide("ollama", extract_max_tokens=1000)
    llm_vendor.replies.extend([GOOD] * 3)
    for size in (10, 60_000, 10):
        provider.generate(type(PROMPT)("facts", "1", "s", "u" * size), FactList)
    windows = [request.body["options"]["num_ctx"] for request in llm_vendor.requests]
    assert windows == [4096, 24576, 24576]
    assert {(request.body["truncate"], request.body["shift"]) for request in llm_vendor.requests} == {(False, False)}
