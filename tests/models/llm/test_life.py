"""Concurrency, closing, the circuit breaker, metrics, and lazy imports."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from souvenir.core.errors import LLMRejected, LLMUnavailable, ServiceClosing
from souvenir.core.telemetry import Instruments
from tests.models.llm.conftest import GOOD, PROMPT, WIRES, FactList, Provide
from tests.vendors.llm import LLMRequest, LLMVendor, fails, says


@pytest.mark.parametrize("wire", WIRES)
def test_concurrent_calls_get_their_own_answers(llm_vendor: LLMVendor, provide: Provide, wire):
    def echo(request: LLMRequest) -> object:
        return {"facts": [{"text": request.user}]}

    llm_vendor.script(echo)
    provider = provide(wire)

    def ask(number: int) -> str:
        prompt = type(PROMPT)("facts", "1", "s", f"question {number}")
        return provider.generate(prompt, FactList).value.facts[0].text

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(40))) == [f"question {number}" for number in range(40)]


@pytest.mark.parametrize("wire", WIRES)
def test_closing_ends_waiting_calls(llm_vendor: LLMVendor, provide: Provide, wire):
    provider = provide(wire, extract_timeout_s=600)
    llm_vendor.replies.extend([says(GOOD, waits=True), says(GOOD, drips=True)])
    with ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(provider.generate, PROMPT, FactList) for _ in range(2)]
        for _ in calls:
            assert llm_vendor.arrived.acquire(timeout=30)
        provider.close()
        assert [type(call.exception(30)) for call in calls] == [ServiceClosing] * 2
    with pytest.raises(ServiceClosing):
        provider.generate(PROMPT, FactList)
    llm_vendor.go_on.set()


def test_closing_does_not_wait_for_a_retry(llm_vendor: LLMVendor, provide: Provide):
    provider = provide(extract_timeout_s=600)
    llm_vendor.replies.append(fails(503, "restarting", retry_after="500"))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(provider.generate, PROMPT, FactList)
        assert llm_vendor.arrived.acquire(timeout=30)
        provider.close()
        assert isinstance(waiting.exception(30), ServiceClosing)


def test_three_consecutive_failures_open_the_circuit_breaker(llm_vendor: LLMVendor, provide: Provide):
    provider = provide(extract_timeout_s=5)
    llm_vendor.script(lambda request: fails(503, "down", retry_after="100"))
    for _ in range(3):
        with pytest.raises(LLMUnavailable) as failure:
            provider.generate(PROMPT, FactList)
        assert failure.value.retry_after_s == 100
    assert provider.status() == "unhealthy"
    asked = len(llm_vendor.requests)
    with pytest.raises(LLMUnavailable, match="failed with status 503") as resting:
        provider.generate(PROMPT, FactList)
    assert len(llm_vendor.requests) == asked
    assert 0 < resting.value.retry_after_s <= 30


def test_unusable_answers_do_not_open_the_circuit_breaker(llm_vendor: LLMVendor, provide: Provide):
    provider = provide()
    for _ in range(4):
        llm_vendor.replies.append(fails(400, "no"))
        with pytest.raises(LLMRejected):
            provider.generate(PROMPT, FactList)
    llm_vendor.replies.append(GOOD)
    assert provider.generate(PROMPT, FactList).attempts == 1


def test_metrics_count_calls_tokens_and_times_of_failures_too(llm_vendor: LLMVendor, provide: Provide):
    instruments = Instruments()
    provider = provide("anthropic", instruments=instruments)
    llm_vendor.replies.extend([GOOD, "no", GOOD, fails(401, "no"), says("no", ending="refusal"), "no", "no"])
    provider.generate(PROMPT, FactList)
    provider.generate(PROMPT, FactList)
    for _ in range(3):
        with pytest.raises(Exception, match="language model"):
            provider.generate(PROMPT, FactList)
    figure = instruments.registry.get_sample_value
    for outcome in ("ok", "repaired", "rejected", "refused", "unusable"):
        labels = {"provider": "anthropic", "outcome": outcome}
        assert figure("souvenir_llm_calls_total", labels) == 1, outcome
    assert figure("souvenir_llm_tokens_total", {"provider": "anthropic", "direction": "input"}) == 600
    assert figure("souvenir_llm_tokens_total", {"provider": "anthropic", "direction": "output"}) == 120
    assert figure("souvenir_llm_duration_seconds_count", {"provider": "anthropic"}) == 5


def test_the_http_client_is_imported_lazily():
    script = """
import sys, app, llm_provider
from souvenir.core.settings import Settings
print("httpx2" in sys.modules)
for vendor in ("anthropic", "openai", "ollama"):
    llm_provider.provider_of(Settings(extract_provider=vendor, extract_api_key="k", _env_file=None)).status()
print("souvenir.models.providers.client" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["False", "False"]
