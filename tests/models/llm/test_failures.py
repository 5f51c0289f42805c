"""Retries within one deadline, permanent errors, and texts that never appear in errors or logs."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from souvenir.core.concurrency import deadline
from souvenir.core.errors import DeadlineExceeded, LLMError, LLMOutputUnusable, LLMRejected, LLMUnavailable
from souvenir.core.settings import ExtractProvider, Settings
from souvenir.models.llm.prompts import Prompt
from souvenir.models.llm.wire import MAX_BODY_BYTES
from souvenir.models.providers.endpoints import LLMEndpoint
from tests.models.llm.conftest import GOOD, PROMPT, SECRET_TEXT, WIRES, FactList, Lenient, Provide
from tests.vendors.llm import KEY, LLMVendor, fails, says
from tests.vendors.server import Reply

pytestmark = pytest.mark.usefixtures("unfiltered_logs")

PASSING = (408, 409, 429, 500, 502, 503, 504, 529)


@pytest.mark.parametrize("wire", WIRES)
def test_transient_errors_are_retried(llm_vendor: LLMVendor, provide: Provide, wire):
    provider = provide(wire)
    for status in PASSING:
        llm_vendor.replies.extend([fails(status, "a moment", retry_after_ms="1")] * 2 + [GOOD])
        assert provider.generate(PROMPT, FactList).attempts == 3


def test_a_call_is_tried_at_most_three_times(llm_vendor: LLMVendor, provide: Provide):
    llm_vendor.replies.extend([fails(529, "Overloaded", retry_after_ms="1")] * 9)
    with pytest.raises(LLMUnavailable, match="failed with status 529"):
        provide("anthropic").generate(PROMPT, FactList)
    assert len(llm_vendor.requests) == 3


@pytest.mark.parametrize("wire", WIRES)
def test_a_broken_connection_is_retried(llm_vendor: LLMVendor, provide: Provide, wire):
    llm_vendor.replies.extend([says(GOOD, hangs_up="before"), says(GOOD, hangs_up="midst"), GOOD])
    assert provide(wire).generate(PROMPT, FactList).attempts == 3


def test_an_unreachable_server_is_unavailable(llm_vendor: LLMVendor, provide: Provide):
    provider = provide("ollama")
    llm_vendor.stop()
    with pytest.raises(LLMUnavailable, match="cannot be reached; try again later, or correct EXTRACT_BASE_URL"):
        provider.generate(PROMPT, FactList)
    assert provider.status() == "unhealthy"


REJECTED = [
    (fails(401, f"Incorrect API key provided: {KEY}"), "refused the key; correct EXTRACT_API_KEY"),
    (fails(403, "Your country is not supported"), "refused the key"),
    (fails(402, "Payment required"), "has no credit left"),
    (fails(404, "model not found"), "has no model 'scripted-1'"),
    (fails(400, f"I cannot read {SECRET_TEXT}"), r"refused the request \(status 400\)"),
    (fails(400, "This model's maximum context length is 4096 tokens"), "takes no request of this length"),
    (fails(413, "Too large"), "takes no request of this length"),
    (Reply(307, b"", {"Location": "http://127.0.0.1:1/"}), r"refused the request \(status 307\)"),
]


@pytest.mark.parametrize("wire", WIRES)
def test_permanent_errors_are_not_retried(llm_vendor: LLMVendor, provide: Provide, wire):
    provider = provide(wire)
    for reply, sentence in REJECTED:
        llm_vendor.requests.clear()
        llm_vendor.replies.append(reply)
        with pytest.raises(LLMRejected, match=sentence) as rejected:
            provider.generate(PROMPT, FactList)
        assert len(llm_vendor.requests) == 1
        assert provider.status() == f"error: {rejected.value.message}"
        llm_vendor.replies.append(GOOD)
        provider.generate(PROMPT, FactList)
        assert provider.status() == "healthy"


def test_a_key_without_credit_is_not_retried(llm_vendor: LLMVendor, provide: Provide):
    llm_vendor.replies.append(fails(429, "You exceeded your current quota", code="insufficient_quota"))
    with pytest.raises(LLMRejected, match="has no credit left"):
        provide().generate(PROMPT, FactList)
    assert len(llm_vendor.requests) == 1


def test_a_retry_after_the_deadline_is_skipped_and_its_time_reported(llm_vendor: LLMVendor, provide: Provide):
    llm_vendor.replies.append(fails(429, "Rate limit reached", retry_after="600"))
    with pytest.raises(LLMUnavailable, match="takes no more requests now") as failure:
        provide().generate(PROMPT, FactList)
    assert failure.value.retry_after_s == 600
    assert len(llm_vendor.requests) == 1


def test_retry_after_may_be_a_date(llm_vendor: LLMVendor, provide: Provide):
    moment = datetime.now(UTC) + timedelta(hours=1)
    llm_vendor.replies.append(fails(503, "maintenance", retry_after=format_datetime(moment, usegmt=True)))
    with pytest.raises(LLMUnavailable) as failure:
        provide().generate(PROMPT, FactList)
    assert 3500 < failure.value.retry_after_s <= 3600


def test_retry_after_is_respected(llm_vendor: LLMVendor, provide: Provide):
    llm_vendor.replies.extend([fails(429, "slowly", retry_after="1"), GOOD])
    began = time.monotonic()
    provide().generate(PROMPT, FactList)
    assert time.monotonic() - began >= 1


SLOW = {
    "nothing comes": says(GOOD, waits=True),
    "the answer drips": says(GOOD, drips=True),
    "an error drips": Reply(500, {"error": "x"}, drips=True),
    "the headers drip": Reply(drips_headers=True),
}


@pytest.mark.parametrize("wire", WIRES)
def test_a_slow_vendor_times_out(llm_vendor: LLMVendor, provide: Provide, wire):
    for how, reply in SLOW.items():
        llm_vendor.replies.append(reply)
        with pytest.raises(LLMUnavailable, match=r"did not answer within 0\.3 s; .*EXTRACT_TIMEOUT_S"):
            provide(wire, extract_timeout_s=0.3).generate(PROMPT, FactList)
        assert not llm_vendor.go_on.is_set(), how
    # Only from here on would the vendor have gone on.
    llm_vendor.go_on.set()


def test_one_deadline_covers_retries_and_the_repair(llm_vendor: LLMVendor, provide: Provide):
    llm_vendor.replies.extend([fails(500, retry_after_ms="300"), "nothing", says(GOOD, waits=True)])
    with pytest.raises(LLMUnavailable, match="did not answer within 1 s"):
        provide(extract_timeout_s=1.0).generate(PROMPT, FactList)
    assert len(llm_vendor.requests) == 3


@pytest.mark.parametrize("wire", WIRES)
def test_a_shorter_deadline_of_the_caller_is_no_failure_of_the_vendor(llm_vendor: LLMVendor, provide: Provide, wire):
    provider = provide(wire, extract_timeout_s=600)
    llm_vendor.replies.extend([says(GOOD, waits=True)] * 4)
    for _ in range(4):
        with deadline(0.2), pytest.raises(DeadlineExceeded):
            provider.generate(PROMPT, FactList)
    assert len(llm_vendor.requests) == 4
    llm_vendor.go_on.set()
    llm_vendor.replies.append(GOOD)
    assert provider.generate(PROMPT, FactList).attempts == 1


@pytest.mark.parametrize("wire", WIRES)
def test_an_oversized_answer_is_not_read_to_its_end(llm_vendor: LLMVendor, provide: Provide, wire):
    llm_vendor.replies.extend([Reply(body=b'{"a": "' + b"x" * (MAX_BODY_BYTES + 100_000))] * 2)
    with pytest.raises(LLMOutputUnusable, match=f"larger than {MAX_BODY_BYTES} bytes"):
        provide(wire).generate(PROMPT, FactList)
    assert len(llm_vendor.requests) == 2


NO_ANSWERS = {
    "nothing": b"",
    "a page": b"<html>Welcome to nginx!</html>",
    "half of one": b'{"choices": [{"mess',
    "no object": b"[]",
    "an empty object": b"{}",
    "an error": b'{"error": {"message": "upstream"}}',
    "no UTF-8": b'{"choices": [{"message": {"content": "\xff\xfe\xfd"}}], "message": {"content": "\xff"}}',
    "too deep": b"[" * 100_000,
    "no choices": b'{"choices": [], "content": null, "message": null, "done": true}',
    "a choice that is none": b'{"choices": [7], "content": [7], "message": 7, "done": true}',
    "content that is none": b'{"choices": [{"message": {"content": 7}}], "content": [{"text": 7}], '
    b'"message": {"content": 7}, "done": true}',
    "not done": b'{"choices": 1, "message": {"content": "{}"}, "done": false}',
}


@pytest.mark.parametrize("wire", WIRES)
def test_an_invalid_response_is_retried_once_and_never_an_empty_result(llm_vendor: LLMVendor, provide: Provide, wire):
    provider = provide(wire)
    for name, body in NO_ANSWERS.items():
        llm_vendor.requests.clear()
        llm_vendor.replies.extend([Reply(body=body)] * 2)
        with pytest.raises(LLMOutputUnusable, match="EXTRACT_BASE_URL is the address of one"):
            provider.generate(PROMPT, Lenient)
        assert len(llm_vendor.requests) == 2, name
        llm_vendor.replies.extend([Reply(body=body), GOOD])
        assert provider.generate(PROMPT, FactList).repaired


@pytest.mark.parametrize("wire", WIRES)
def test_lone_surrogates_are_removed_from_prompts_and_answers(llm_vendor: LLMVendor, provide: Provide, wire):
    llm_vendor.replies.extend(['{"facts": ["a\udfffb\0"]}', GOOD])
    prompt = Prompt("facts", "1", "sys \ud800", "user a\udfffb\0")
    assert provide(wire).generate(prompt, FactList).repaired
    assert llm_vendor.requests[0].user == "user a?b\0"
    assert llm_vendor.requests[1].turns[1]["content"] == '{"facts": ["a?b\0"]}'


FAILURES: dict[str, list[Any]] = {
    "key": [fails(401, f"Incorrect API key provided: {KEY} for {SECRET_TEXT}", x_key=KEY)],
    "request": [fails(400, f"{KEY} sent {SECRET_TEXT}")],
    "model": [fails(404, f"{KEY} sent {SECRET_TEXT}")],
    "limits": [fails(429, f"{KEY} sent {SECRET_TEXT}", retry_after_ms="1")] * 3,
    "server": [fails(500, f"{KEY} sent {SECRET_TEXT}", retry_after_ms="1")] * 3,
    "dialect": [fails(400, f"response_format: {KEY} sent {SECRET_TEXT}")] * 9,
    "break": [says(f"{KEY} {SECRET_TEXT}", hangs_up="midst")] * 3,
    "refusal": [says(f"{KEY} {SECRET_TEXT}", ending="refusal")],
    "cut": [says(f"{KEY} {SECRET_TEXT}", ending="length")] * 2,
    "prose": [f"{KEY} {SECRET_TEXT}"] * 2,
    "other shape": [{"facts": [{"text": [f"{KEY} {SECRET_TEXT}"]}]}] * 2,
    "other keys": [{f"{KEY} {SECRET_TEXT}": 1}] * 2,
    "no answer": [Reply(body=f"{KEY} {SECRET_TEXT}".encode())] * 2,
    "slow": [says(f"{KEY} {SECRET_TEXT}", waits=True)] * 3,
}


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("wire", WIRES)
def test_errors_and_log_lines_contain_neither_key_nor_text(
    llm_vendor: LLMVendor, provide: Provide, wire, caplog, monkeypatch
):
    caplog.set_level(logging.DEBUG)
    patient, hasty = provide(wire), provide(wire, extract_timeout_s=0.3)
    for name, replies in FAILURES.items():
        if (wire, name) == ("ollama", "refusal"):
            continue
        llm_vendor.replies.extend(replies)
        provider = hasty if name == "slow" else patient
        with capture_logs() as lines, pytest.raises(LLMError) as failure:
            provider.generate(PROMPT, FactList)
        chain = list(chain_of(failure.value))
        shown = [f"{error!r} {error}" for error in chain] + [str(line) for line in lines]
        shown += [record.getMessage() for record in caplog.records]
        shown += [provider.status(), repr(provider)]
        assert not any(KEY in line or "Margarethe" in line for line in shown), (name, shown)
        assert len(chain) == 1, "a chained error could hold what was sent"
        llm_vendor.replies.clear()
        llm_vendor.replies.append(GOOD)
        patient.generate(PROMPT, FactList)
    llm_vendor.go_on.set()


def test_settings_do_not_display_keys():
    settings = Settings(
        extract_provider=ExtractProvider.ANTHROPIC,
        extract_api_key=SecretStr(KEY),
        anthropic_api_key=SecretStr(KEY),
        openai_api_key=SecretStr(KEY),
    )
    assert KEY not in repr(settings)
    assert KEY not in repr(LLMEndpoint.of(settings, ExtractProvider.ANTHROPIC))


def test_a_key_is_sent_only_to_its_vendor():
    keys: dict[str, Any] = {"openai_api_key": KEY, "anthropic_api_key": "sk-ant"}
    elsewhere = Settings(extract_base_url="http://gpu:8000/v1", **keys)
    assert LLMEndpoint.of(elsewhere, ExtractProvider.OPENAI).api_key is None
    assert LLMEndpoint.of(elsewhere, ExtractProvider.ANTHROPIC).api_key is None
    assert LLMEndpoint.of(Settings(**keys), ExtractProvider.OLLAMA).api_key is None
    assert LLMEndpoint.of(Settings(**keys), ExtractProvider.OPENAI).api_key == KEY
    assert LLMEndpoint.of(Settings(**keys), ExtractProvider.ANTHROPIC).api_key == "sk-ant"
