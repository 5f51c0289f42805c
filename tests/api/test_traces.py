"""Traces as received by a scripted OTLP/HTTP collector on loopback, which decodes them."""

from __future__ import annotations

import gzip
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

import app as program
from souvenir import VERSION
from souvenir.core.errors import Unavailable
from tests.api.conftest import KEY, Start

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER_SPAN_ID = "00f067aa0ba902b7"
TRACEPARENT = {"traceparent": f"00-{TRACE_ID}-{CALLER_SPAN_ID}-01"}


class Collector(ThreadingHTTPServer):
    """Keeps every span that it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, ExportTraceServiceRequest]] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def spans(self) -> list[Span]:
        """In the order in which they ended."""
        return [
            span
            for _, request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.requests.append((self.path, ExportTraceServiceRequest.FromString(body)))
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        return None


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    collector = Collector()
    serving = threading.Thread(target=collector.serve_forever, args=(0.01,), daemon=True)
    serving.start()
    yield collector
    collector.shutdown()
    collector.server_close()
    serving.join()


def attributes(span: Span) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, str(pair.value.WhichOneof("value"))) for pair in span.attributes}


def test_a_search_is_a_span_inside_of_its_request_inside_of_the_callers_trace(start: Start, collector: Collector):
    client = start(otel_exporter_otlp_endpoint=collector.endpoint + "/")
    client.post("/memory/add", json={"text": "red apple", "source": "s"}, headers={"X-Namespace": "ann"})
    client.post("/search", json={"query": "apple"}, headers={"X-Namespace": "ann", **TRACEPARENT})
    client.__exit__(None, None, None)
    search, request = [span for span in collector.spans if span.trace_id.hex() == TRACE_ID]
    assert (request.name, request.kind) == ("POST /search", Span.SPAN_KIND_SERVER)
    assert request.parent_span_id.hex() == CALLER_SPAN_ID
    assert attributes(request) == {
        "http.request.method": "POST",
        "http.route": "/search",
        "http.response.status_code": 200,
    }
    assert (search.name, search.kind) == ("search_memory", Span.SPAN_KIND_INTERNAL)
    assert search.parent_span_id == request.span_id
    assert attributes(search) == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.store.id": "ann",
        "gen_ai.memory.record.count": 1,
    }
    assert request.start_time_unix_nano <= search.start_time_unix_nano
    assert search.end_time_unix_nano <= request.end_time_unix_nano
    [(path, first)] = collector.requests
    assert path == "/v1/traces"
    assert attributes(first.resource_spans[0].resource)["service.name"] == "souvenir"
    assert attributes(first.resource_spans[0].resource)["service.version"] == VERSION


def test_every_memory_operation_has_the_name_that_the_conventions_give_it(start: Start, collector: Collector):
    client = start(otel_exporter_otlp_endpoint=collector.endpoint)
    ids = client.post("/memory/add-batch", json={"memories": [{"text": t, "source": "s"} for t in ("a", "b", "c")]})
    first, second, third = ids.json()["ids"]
    client.post("/memory/upsert", json={"text": "d", "source": "s", "key": "k"})
    client.patch(f"/memory/{first}", json={"pinned": True})
    client.post(f"/memory/{second}/supersede", json={"text": "e"})
    client.delete(f"/memory/{first}?force=true")
    client.post("/memory/delete-batch", json={"ids": [third, 99]})
    client.delete("/memories?source=s")
    client.__exit__(None, None, None)
    found = [attributes(span) for span in collector.spans if span.kind == Span.SPAN_KIND_INTERNAL]
    assert [
        (
            span["gen_ai.operation.name"],
            span.get("gen_ai.memory.record.id"),
            span["gen_ai.memory.record.count"],
        )
        for span in found
    ] == [
        ("create_memory", None, 3),
        ("upsert_memory", None, 1),
        ("update_memory", str(first), 1),
        ("update_memory", str(second), 1),
        ("delete_memory", str(first), 1),
        ("delete_memory", None, 2),
        ("delete_memory", None, 3),
    ]


def test_a_failed_span_has_an_error_code(start: Start, collector: Collector):
    client = start(otel_exporter_otlp_endpoint=collector.endpoint)
    client.delete("/memory/7")
    client.__exit__(None, None, None)
    deleted, request = collector.spans
    assert attributes(deleted)["error.type"] == "memory_not_found"
    assert deleted.status.code == Status.STATUS_CODE_ERROR
    assert deleted.status.message == ""
    assert list(deleted.events) == []
    assert request.status.code == Status.STATUS_CODE_UNSET
    assert attributes(request)["http.response.status_code"] == 404


def test_no_span_holds_a_text_a_query_a_source_or_a_key(start: Start, collector: Collector):
    client = start(otel_exporter_otlp_endpoint=collector.endpoint, api_key=KEY)
    client.headers["X-API-Key"] = KEY
    body = {"text": "secret text", "source": "secret/source", "metadata": {"entity_key": "secret-key"}}
    stored = client.post("/memory/add", json=body).json()["id"]
    client.post("/memory/add", json=body)
    client.post("/search", json={"query": "secret query", "source_prefix": "secret"})
    client.get("/memories?source=secret/source")
    client.get("/secret/path")
    client.patch(f"/memory/{stored}", json={"text": "another secret"})
    client.delete("/memories?source=secret")
    client.post("/search", json={"query": "q"}, headers={"X-API-Key": "secret", "baggage": "secret=1"})
    client.__exit__(None, None, None)
    assert len(collector.spans) > 10
    everything = b"".join(request.SerializeToString() for _, request in collector.requests)
    assert b"secret" not in everything
    assert KEY.encode() not in everything


def test_log_lines_of_a_traced_request_carry_its_trace(start: Start, collector: Collector, capsys):
    client = start(otel_exporter_otlp_endpoint=collector.endpoint)
    client.get("/stats", headers=TRACEPARENT)
    client.__exit__(None, None, None)
    assert f"trace_id={TRACE_ID}" in capsys.readouterr().err


def test_without_an_endpoint_nothing_is_traced(start: Start, collector: Collector, capsys):
    client = start()
    assert client.get("/stats", headers=TRACEPARENT).status_code == 200
    client.__exit__(None, None, None)
    assert collector.requests == []
    assert "trace_id" not in capsys.readouterr().err


def test_an_unavailable_collector_delays_no_request(start: Start, collector: Collector):
    endpoint = collector.endpoint
    collector.server_close()
    client = start(otel_exporter_otlp_endpoint=endpoint)
    assert client.post("/memory/add", json={"text": "red", "source": "s"}).status_code == 200
    assert client.post("/search", json={"query": "red"}).json()["count"] == 1


def test_an_endpoint_without_the_packages_is_one_sentence_at_the_start(tmp_path, monkeypatch, capsys, start: Start):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(Unavailable, match="requirements-otel"):
        start(otel_exporter_otlp_endpoint="http://127.0.0.1:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "unused"))
    assert program.main([]) == 1
    [sentence] = capsys.readouterr().err.splitlines()
    assert "OTEL_EXPORTER_OTLP_ENDPOINT is set" in sentence
    assert not (tmp_path / "unused").exists()
