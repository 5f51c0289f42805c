"""Both clients against the real service, and their behaviour when the service or the network fails."""

from __future__ import annotations

import asyncio
import inspect
import json
import ssl
import time
from collections.abc import Iterator
from typing import Any

import pytest

from souvenir_client import AsyncSouvenir, Souvenir, calls
from souvenir_client.errors import (
    ConnectionFailed,
    InvalidRequest,
    NotFound,
    Overloaded,
    ServerFailed,
    TimedOut,
    Unauthorized,
    UnreadableAnswer,
)
from tests.client.running import RunningService, free_port
from tests.vendors.server import Reply, Request, Server

ADDED = {"success": True, "id": 1, "message": "Memory added successfully"}
MESSAGE = {
    "id": "m", "agent_id": "a", "role": "user", "content": "Hi", "created_at": "2025-04-02T09:30:00.000000+00:00",
    "metadata": None, "similarity": None, "session_id": "s", "user": None, "name": None, "edited_at": None,
}  # fmt: skip
COUNT = {"count": 7}


class Asked(Request):
    pass


class ScriptedService(Server[Asked]):
    """Answers with what was queued, in that order."""

    def __init__(self) -> None:
        super().__init__(Asked)

    def reply(self, request: Asked, queued: Any) -> Reply:
        return queued if isinstance(queued, Reply) else Reply(body=queued)


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    server = ScriptedService()
    server.start()
    yield server
    server.stop()


class Both:
    """One surface over either client, so that a test says what both do."""

    def __init__(self, kind: str, url: str, **options: Any) -> None:
        self._kind, self._arguments = kind, (url, options)

    def ask(self, path: str, *positional: Any, **named: Any) -> Any:
        url, options = self._arguments
        if self._kind == "sync":
            with Souvenir(url, **options) as client:
                result = self._method(client, path)(*positional, **named)
                return list(result) if inspect.isgenerator(result) else result

        async def asked() -> Any:
            async with AsyncSouvenir(url, **options) as client:
                result = self._method(client, path)(*positional, **named)
                if inspect.isasyncgen(result):
                    return [item async for item in result]
                return await result

        return asyncio.run(asked())

    @staticmethod
    def _method(client: Any, path: str) -> Any:
        for name in path.split("."):
            client = getattr(client, name)
        return client


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_PAUSE_S", 0.001)


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_stored_memory_is_found_changed_and_deleted(kind: str, service: RunningService):
    client = Both(kind, service.url, namespace=f"crud-{kind}")
    added = client.ask(
        "memories.add", text="Billing runs on Postgres 17.", source="team/billing", metadata={"by": "ana"}
    )
    found = client.ask("memories.search", query="which database does billing use?", k=1)
    assert [(hit.id, hit.text, hit.extra) for hit in found.results] == [
        (added.id, "Billing runs on Postgres 17.", {"by": "ana"})
    ]
    client.ask("memories.update", added.id, text="Billing runs on Postgres 18.")
    assert client.ask("memories.get", added.id).text == "Billing runs on Postgres 18."
    client.ask("memories.delete", added.id)
    with pytest.raises(NotFound) as missing:
        client.ask("memories.get", added.id)
    assert (missing.value.status, missing.value.code) == (404, "memory_not_found")
    assert missing.value.request_id


def test_a_list_answer_carries_the_values_of_its_headers(kind: str, service: RunningService):
    client = Both(kind, service.url)
    said = [{"role": "user", "content": f"I like tea number {number}."} for number in range(3)]
    client.ask("messages.add_batch", agent_name=f"lists-{kind}", messages=said)
    page = client.ask("messages.list", f"lists-{kind}", limit=2)
    assert (len(page), page.total, page[0].content) == (2, 3, "I like tea number 2.")
    found = client.ask("messages.search", agent_name=f"lists-{kind}", query="tea")
    assert found.evidence in {"strong", "weak", "none"}
    assert 0 <= found.relevance <= 1
    assert found.degraded == []
    assert (found.answered, found.answer_quote, found.answer_reason) == (None, None, None)
    verified = client.ask("messages.search", agent_name=f"lists-{kind}", query="tea", verify=True)
    assert (verified.answered, verified.answer_quote) == ("unknown", None)
    assert verified.answer_reason == "There is no reader; set EXTRACT_PROVIDER or RERANK_MODEL"


def test_names_in_any_script_are_sent_unchanged(kind: str, service: RunningService):
    name = f"café ☕ 100%?#&-{kind}"
    client = Both(kind, service.url, namespace=name)
    client.ask("agents.create", name=name, metadata={"a": "ß"})
    assert client.ask("agents.get", name).metadata == {"a": "ß"}
    client.ask("memories.add", text="Tee.", source="küche/α")
    assert client.ask("memories.count", source="küche/α").count == 1


def test_an_export_is_imported_line_by_line(kind: str, service: RunningService):
    there, here = (Both(kind, service.url, namespace=f"{side}-{kind}") for side in ("there", "here"))
    for number in range(3):
        there.ask("memories.add", text=f"Fact\u2028number\x85{number}.\x1d\u2029", source="facts")
    header, *lines = list(there.ask("transfer.export_memories"))
    assert header["count"] == len(lines) == 3
    assert [line["text"] for line in lines] == [f"Fact\u2028number\x85{number}.\x1d\u2029" for number in range(3)]
    sent = [json.dumps(line).encode() + b"\n" for line in (header, *lines)]
    assert here.ask("transfer.import_memories", sent).imported == 3
    assert here.ask("memories.count").count == 3


def test_a_refused_stream_is_the_error_that_the_service_names(kind: str, service: RunningService):
    with pytest.raises(NotFound) as missing:
        list(Both(kind, service.url).ask("agents.export", "nobody"))
    assert missing.value.code == "agent_not_found"


def test_invalid_fields_are_reported_in_one_sentence(kind: str, service: RunningService):
    with pytest.raises(InvalidRequest) as wrong:
        Both(kind, service.url).ask("memories.search", query="", k=0)
    assert wrong.value.status == 422
    assert "body.query" in wrong.value.detail
    assert "body.k" in wrong.value.detail


def test_a_key_is_sent_and_never_shown(kind: str, service: RunningService):
    with pytest.raises(Unauthorized) as refused:
        Both(kind, service.url, api_key="secret-1f2e").ask("memories.count")
    assert "secret-1f2e" not in str(refused.value)
    with Souvenir(service.url, api_key="secret-1f2e") as client:
        assert "secret-1f2e" not in repr(client._transport.address)


def test_an_unreachable_address_is_named(kind: str):
    port = free_port()
    with pytest.raises(ConnectionFailed, match=f"No Souvenir answers at http://127.0.0.1:{port}"):
        Both(kind, f"http://127.0.0.1:{port}", max_retries=0).ask("health.check")


def test_a_message_whose_answer_was_lost_is_retried_with_its_key(kind: str, scripted: ScriptedService):
    scripted.replies += [Reply(hangs_up="before"), Reply(body=MESSAGE, hangs_up="midst"), MESSAGE]
    message = Both(kind, scripted.url).ask("messages.add", agent_name="a", role="user", content="Hi")
    assert message.id == "m"
    keys = [request.headers["idempotency-key"] for request in scripted.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_each_call_gets_a_new_idempotency_key_unless_given(kind: str, scripted: ScriptedService):
    scripted.replies += [MESSAGE, MESSAGE, MESSAGE]
    client = Both(kind, scripted.url)
    for more in ({}, {}, {"idempotency_key": "mine"}):
        client.ask("messages.add", agent_name="a", role="user", content="Hi", **more)
    first, second, third = [request.headers["idempotency-key"] for request in scripted.requests]
    assert first != second
    assert third == "mine"


def test_an_unsafe_request_without_a_key_is_not_retried(kind: str, scripted: ScriptedService):
    scripted.replies += [Reply(hangs_up="before"), ADDED]
    with pytest.raises(ConnectionFailed):
        Both(kind, scripted.url).ask("memories.delete", 1)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("status", [502, 503, 504])
def test_reads_are_retried_after_transient_failures(kind: str, status: int, scripted: ScriptedService):
    scripted.replies += [Reply(status, {"detail": "Starting", "code": "starting"}), COUNT]
    assert Both(kind, scripted.url).ask("memories.count").count == 7


def test_an_overload_refusal_is_retried_after_retry_after(kind: str, scripted: ScriptedService):
    busy = Reply(429, {"detail": "Too much", "code": "overloaded"}, {"Retry-After": "0"})
    scripted.replies += [busy, busy, ADDED, busy, busy, busy]
    client = Both(kind, scripted.url)
    assert client.ask("memories.add", text="x", source="y").id == 1
    with pytest.raises(Overloaded) as refused:
        client.ask("memories.add", text="x", source="y")
    assert refused.value.retry_after_s == 0


def test_a_permanent_failure_is_not_retried(kind: str, scripted: ScriptedService):
    scripted.replies += [Reply(501, {"detail": "No model", "code": "extraction_not_configured"}), COUNT]
    with pytest.raises(ServerFailed) as failed:
        Both(kind, scripted.url).ask("extraction.start", messages="User: Hi")
    assert failed.value.code == "extraction_not_configured"
    assert len(scripted.requests) == 1


def test_a_missing_answer_times_out(kind: str, scripted: ScriptedService):
    scripted.replies.append(Reply(waits=True))
    with pytest.raises(TimedOut, match=r"no answer within 0\.2 s"):
        Both(kind, scripted.url, timeout_s=0.2, max_retries=0).ask("memories.count")
    scripted.go_on.set()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"<html>Welcome</html>"),
        Reply(body={"total": 7}),
        Reply(body={"count": "7"}),
        Reply(302, {}),
        Reply(404, b"<html>Not here</html>"),
        Reply(501, b"Unsupported method"),
        Reply(body=b"[" * 200_000),
        Reply(body=b'{"count": ' + b"1" * 6_000 + b"}"),
    ],
    ids=["html", "missing", "mistyped", "redirect", "not found", "unsupported", "deep", "long"],
)
def test_a_foreign_answer_is_reported_as_invalid(kind: str, reply: Reply, scripted: ScriptedService):
    scripted.replies.append(reply)
    with pytest.raises(UnreadableAnswer, match="cannot be read"):
        Both(kind, scripted.url).ask("memories.count")


def test_unknown_fields_of_a_newer_service_are_ignored(kind: str, scripted: ScriptedService):
    scripted.replies.append({**COUNT, "since_when": "2030"})
    assert Both(kind, scripted.url).ask("memories.count").count == 7


def test_the_environment_sets_the_address_of_the_service(monkeypatch: pytest.MonkeyPatch, service: RunningService):
    monkeypatch.setenv("MEMORY_SERVER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SOUVENIR_URL", f"{service.url}/")
    with Souvenir() as client:
        assert client.server_url == service.url
        assert client.health.check().status == "ok"
    monkeypatch.delenv("SOUVENIR_URL")
    with Souvenir() as client:
        assert client.server_url == "http://127.0.0.1:9"


@pytest.mark.parametrize(
    "options",
    [
        *({"server_url": url} for url in ("localhost:8900", "http://", "http://x:port", "http://x/\x07", "ftp://x")),
        *(
            {"timeout_s": 0},
            {"timeout_s": float("inf")},
            {"max_retries": -1},
            {"namespace": "a\nb"},
            {"namespace": "\udcff"},
        ),
        *({"api_key": "mem_a\nmem_b"}, {"api_key": "mem_\x00"}),
    ],
    ids=repr,
)
def test_a_client_without_a_valid_address_is_refused(options: dict[str, Any]):
    with pytest.raises(ValueError, match=r"not an HTTP address|must be above|not a namespace|no key has"):
        Souvenir(**options)


def test_without_tls_no_certificates_are_loaded():
    context = calls.trusted("http://127.0.0.1:8900")
    assert isinstance(context, ssl.SSLContext)
    assert (context.get_ca_certs(), context.verify_mode) == ([], ssl.CERT_REQUIRED)
    assert calls.trusted("https://souvenir.lan") is True


def test_an_invalid_key_is_not_shown_in_its_error():
    with pytest.raises(ValueError, match="no key has") as refused:
        Souvenir(api_key="mem_secret\n\x00")
    assert "secret" not in str(refused.value)


def test_a_key_from_a_file_may_end_with_a_newline(scripted: ScriptedService):
    scripted.replies += [COUNT]
    with Souvenir(scripted.url, api_key="mem_1\n") as client:
        client.memories.count()
    assert scripted.requests[0].headers["x-api-key"] == "mem_1"


@pytest.mark.parametrize("name", ["", ".", "..", "bob/users/alice", "extract/.."])
def test_a_name_that_would_lead_to_another_route_is_refused_before_anything_is_sent(
    name: str, scripted: ScriptedService
):
    with Souvenir(scripted.url) as client:
        for ask in (
            lambda: client.agents.delete(name),
            lambda: client.agents.delete_user("bob", name),
            lambda: client.memories.delete(name),  # type: ignore[arg-type]
        ):
            with pytest.raises(ValueError, match="not a valid name"):
                ask()
    assert scripted.requests == []


def test_a_path_within_a_path_keeps_its_slashes(service: RunningService):
    with Souvenir(service.url, namespace="paths") as client:
        client.extraction_profiles.set("team/a b", mode="aggressive")
        assert [profile.source_prefix for profile in client.extraction_profiles.list()] == ["team/a b/"]
        assert client.extraction_profiles.get("team/a b").mode == "aggressive"
        with pytest.raises(ValueError, match="not a valid name"):
            client.extraction_profiles.get("team/../b")


@pytest.mark.parametrize("wish", ["0", "-5", "nan", "inf", "soon"])
def test_an_invalid_retry_after_does_not_shorten_the_pause(
    wish: str, scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(calls, "FIRST_PAUSE_S", 0.05)
    scripted.replies += [Reply(503, {"detail": "x", "code": "starting"}, {"Retry-After": wish}), COUNT]
    begin = time.monotonic()
    with Souvenir(scripted.url) as client:
        assert client.memories.count().count == 7
    assert time.monotonic() - begin >= 0.025


def test_a_password_in_the_address_is_never_shown():
    with (
        pytest.raises(ConnectionFailed) as failed,
        Souvenir("http://ana:secret-1@127.0.0.1:9", max_retries=0) as client,
    ):
        client.health.check()
    assert "secret-1" not in f"{failed.value!s} {failed.value!r} {failed.value.url}"


def test_null_is_sent_and_omitted_arguments_are_not(scripted: ScriptedService):
    scripted.replies += [MESSAGE]
    with Souvenir(scripted.url) as client:
        client.messages.update("a", "m", metadata=None)
    assert scripted.requests[0].body == {"metadata": None}


def test_wait_polls_a_job_until_it_ends(service: RunningService):
    with Souvenir(service.url, namespace="jobs") as client:
        client.memories.add(text="We keep backups for a year.", source="facts")
        accepted = client.maintenance.compact(wait_s=0)
        job = client.jobs.wait(accepted.job_id) if hasattr(accepted, "job_id") else None
    assert job is None or job.status == "completed"
