"""Requests that nobody thought of: schemathesis makes them from the description, in this process.

Its pytest plugin is not used: it reaches into parts of pytest that have changed. Hypothesis drives its strategies.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.python.asgi import shutdown_lifespans
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app import create_app
from souvenir.settings import Settings
from tests.api.operations import DOCUMENT, OPERATIONS, Operation
from tests.fake_embedder import FakeEmbedder

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

SCHEMA = schemathesis.openapi.from_dict(copy.deepcopy(DOCUMENT))
BOUNDED = settings(
    max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module", autouse=True)
def _application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    SCHEMA.app = create_app(Settings(data_dir=tmp_path_factory.mktemp("conformance")), FakeEmbedder())
    yield
    shutdown_lifespans()


@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        pytest.param(operation, mode, id=f"{operation} {mode.value}")
        for operation in OPERATIONS
        for mode in schemathesis.GenerationMode
        # Nothing can be wrong about a request that has no parts.
        if mode.is_positive or operation.body is not None or operation.description.get("parameters")
    ],
)
def test_no_request_is_a_fault_and_every_answer_is_as_described(operation: Operation, mode):
    cases = SCHEMA[operation.template][operation.method].as_strategy(generation_mode=mode)

    @BOUNDED
    @given(case=cases)
    def send(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(checks=CHECKS)

    send()
