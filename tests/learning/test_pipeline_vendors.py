"""The whole pipeline through the vendors' SDKs, against a scripted server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.prompts import Prompt
from souvenir.models.llm.provider import LLMProvider, provider_of
from tests.learning.pipeline import OpenExtraction, actions, extracted, stored, texts
from tests.learning.scripted_model import about, every_line
from tests.vendors.llm import LLMRequest, LLMVendor, fails, says

SAID = "user: Alice lives in Lisbon\nassistant: Bob keeps nine bees"


@pytest.fixture
def llm_vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.fixture(params=["anthropic", "openai", "ollama"])
def provider(request: pytest.FixtureRequest, llm_vendor: LLMVendor) -> Iterator[LLMProvider]:
    made = provider_of(Settings(**llm_vendor.settings(request.param)))
    assert made is not None
    with closing(made):
        yield made


def good(request: LLMRequest) -> Any:
    prompt = Prompt(request.prompt or "", "1", request.system, request.user)
    answer = every_line(prompt) if prompt.name == "propose" else about("UPDATE")(prompt)
    return says(answer, input_tokens=300, output_tokens=40)


def test_facts_are_learned_and_memories_updated_over_the_wire(
    engine: MemoryEngine, open_extraction: OpenExtraction, llm_vendor: LLMVendor, provider: LLMProvider
):
    stored(engine, "Alice lives in Porto")
    llm_vendor.script(good)
    result = extracted(open_extraction(provider), SAID)
    assert actions(result) == ["update", "add"]
    assert result["tokens"] == {"extract": {"input": 300, "output": 40}, "audn": {"input": 300, "output": 40}}
    assert sorted(texts(engine)) == ["Alice lives in Lisbon", "Bob keeps nine bees"]
    assert [request.prompt for request in llm_vendor.requests] == ["propose", "decide"]


def test_errors_of_the_vendor_are_in_the_result(
    engine: MemoryEngine, open_extraction: OpenExtraction, llm_vendor: LLMVendor, provider: LLMProvider
):
    whole = '{"facts": [{"category": "DETAIL", "text": "Bob keeps bees", "quote": "Bob keeps bees", "when": null}, 7]}'
    llm_vendor.replies.extend([whole, whole, fails(401, "bad key")])
    result = extracted(open_extraction(provider), SAID)
    assert (result["error"], result["error_stage"]) == ("provider_runtime_failure", "audn")
    assert "EXTRACT_API_KEY" in result["error_message"]
    assert [one["action"] for one in result["actions"]] == ["proposed", "error"]
    assert result["tokens"]["extract"] == {"input": 200, "output": 40}
    assert texts(engine) == []
