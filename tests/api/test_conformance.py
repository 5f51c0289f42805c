"""Requests that nobody thought of, by keys of every role: schemathesis makes them from the description.

They run in this process. Its pytest plugin is not used: it reaches into parts of pytest that have changed. Hypothesis
drives its strategies. Making a request takes longer than answering it, so the keys of all roles send the same ones.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from time import monotonic
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import SecretStr
from schemathesis.checks import not_a_server_error
from schemathesis.python.asgi import shutdown_lifespans
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app import create_app
from souvenir.api.transfer import NDJSON
from souvenir.core.settings import Settings
from souvenir.core.types import Role
from tests.api.conftest import KEY
from tests.api.learning import takes_everything
from tests.api.operations import DOCUMENT, OF_AGENTS, OPERATIONS, Operation
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.vendors.llm import LLMVendor

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

SCHEMA = schemathesis.openapi.from_dict(copy.deepcopy(DOCUMENT))
WITH_MODEL = schemathesis.openapi.from_dict(copy.deepcopy(DOCUMENT))
"""Of a service that has a language model; that of `SCHEMA` has none."""

READY_WITHIN_S = 30.0

EXAMPLES = {Role.ADMIN: 10, Role.READ_WRITE: 5, Role.READ_ONLY: 5}
KEYS: dict[Role, str] = {Role.ADMIN: KEY}


@schemathesis.serializer(NDJSON)
def _as_lines(_: schemathesis.SerializationContext, value: Any) -> bytes:
    """A string is the body itself; what else a negative test makes of it is JSON."""
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


@pytest.fixture(scope="module", autouse=True)
def _application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    vendor = LLMVendor()
    vendor.start()
    vendor.script(takes_everything)
    for schema, settings_of_model in ((SCHEMA, {}), (WITH_MODEL, vendor.settings("openai"))):
        folder = tmp_path_factory.mktemp("conformance")
        schema.app = create_app(
            Settings(data_dir=folder, api_key=SecretStr(KEY), allowed_hosts=("testserver",), **settings_of_model),
            FakeEmbedder(),
            fake_of,
        )
    for role in (Role.READ_ONLY, Role.READ_WRITE):
        KEYS[role] = made_key(role)
    for schema in (SCHEMA, WITH_MODEL):
        until_ready(schema)
    yield
    shutdown_lifespans()
    vendor.stop()


def until_ready(schema: Any) -> None:
    """A service that has not loaded its model yet says 503, as it should."""
    deadline = monotonic() + READY_WITHIN_S
    while schema["/health/ready"]["GET"].Case().call().status_code != HTTPStatus.OK:
        assert monotonic() < deadline, "the service does not get ready"


def made_key(role: Role) -> str:
    body: Any = {"name": role.value, "role": role.value, "prefixes": ["claude-code", "team"]}
    case = SCHEMA["/api/keys"]["POST"].Case(body=body, media_type="application/json")
    made: str = case.call(headers={"X-API-Key": KEY}).json()["key"]
    return made


def roles_for(operation: Operation) -> list[Role]:
    """Agents' routes refuse keys of some sources before they look at anything; the table of access holds that."""
    return [Role.ADMIN] if OF_AGENTS & set(operation.description["tags"]) else list(Role)


@pytest.mark.parametrize(
    ("operation", "mode", "role"),
    [
        pytest.param(operation, mode, role, id=f"{operation} {mode.value}-{role}")
        for operation in OPERATIONS
        for mode in schemathesis.GenerationMode
        for role in roles_for(operation)
        # Nothing can be wrong about a request that has no parts.
        if mode.is_positive or operation.body is not None or operation.description.get("parameters")
    ],
)
def test_no_request_is_a_fault_and_every_answer_is_as_described(operation: Operation, mode, role: Role):
    send_all(cases_of(operation, mode), role)


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if "extraction" in one.description["tags"]], ids=str)
def test_the_same_holds_where_a_model_learns(operation: Operation):
    send_all(cases_of(operation, schemathesis.GenerationMode.POSITIVE, learns=True), Role.ADMIN)


def parts_of(operation: Operation) -> str:
    """What a request to it is made of, but for its method and its path."""
    return json.dumps([operation.description.get(part) for part in ("parameters", "requestBody", "security")])


ALIKE: dict[str, Operation] = {}
for one in OPERATIONS:
    ALIKE.setdefault(parts_of(one), one)


def cases_of(
    operation: Operation, mode: schemathesis.GenerationMode, *, learns: bool = False
) -> list[schemathesis.Case[Any]]:
    """Operations with the same parts would have the same requests drawn: they are drawn once."""
    drawn = drawn_for(ALIKE[parts_of(operation)], mode, learns=learns)
    schema = WITH_MODEL if learns else SCHEMA
    asked = schema[operation.template][operation.method]
    return [
        asked.Case(
            path_parameters=case.path_parameters,
            headers=case.headers,
            cookies=case.cookies,
            query=case.query,
            body=case.body,
            media_type=case.media_type,
        )
        for case in drawn
    ]


@cache
def drawn_for(operation: Operation, mode: schemathesis.GenerationMode, *, learns: bool) -> list[schemathesis.Case[Any]]:
    schema = WITH_MODEL if learns else SCHEMA
    cases: list[schemathesis.Case[Any]] = []

    @settings(
        max_examples=max(EXAMPLES.values()),
        phases=[Phase.generate],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[operation.template][operation.method].as_strategy(generation_mode=mode))
    def keep(case: schemathesis.Case[Any]) -> None:
        cases.append(case)

    keep()
    return cases


def send_all(cases: list[schemathesis.Case[Any]], role: Role) -> None:
    headers = {"X-API-Key": KEYS[role]}
    for case in cases[: EXAMPLES[role]]:
        response = case.call(headers=headers)
        # That a service has no language model is described, and no fault of it.
        lacks_model = response.status_code == 501 or b'"llm_rejected"' in response.content
        checks = [check for check in CHECKS if not lacks_model or check is not not_a_server_error]
        case.validate_response(response, checks=checks, headers=headers)
        assert response.status_code not in {401, 421}
