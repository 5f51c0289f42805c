"""The generated parts of the client are what their sources say, and both clients are one."""

from __future__ import annotations

import inspect
import re

import pytest

import souvenir_client
from scripts.build_client import CLIENT, document_of_the_service, generated, stale, write
from scripts.build_sdk_docs import PAGE, sdk_page
from scripts.client_operations import OPERATIONS
from souvenir_client import AsyncSouvenir, Souvenir
from souvenir_client.aio import groups as asynchronous
from souvenir_client.sync import groups as synchronous

GROUPS = sorted({name.split(".")[0] for name in OPERATIONS.values()})


@pytest.fixture(scope="module")
def document() -> dict[str, object]:
    return document_of_the_service()


def test_every_generated_file_is_what_the_generator_writes(tmp_path):
    write(tmp_path)
    written = {path.relative_to(tmp_path): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.py")}
    kept = {path: (CLIENT / path).read_text(encoding="utf-8") for path in written if (CLIENT / path).exists()}
    assert kept == written, "run python -m scripts.build_client"


def test_nothing_is_kept_that_nothing_generates(document):
    assert list(stale(CLIENT, generated(document))) == []


def test_the_page_of_the_sdk_is_what_the_clients_are(document):
    assert PAGE.read_text(encoding="utf-8") == sdk_page(document), "run python -m scripts.build_sdk_docs"


def test_every_operation_of_the_api_is_a_method_of_both_clients(document):
    named = {operation["operationId"] for methods in document["paths"].values() for operation in methods.values()}
    assert named == set(OPERATIONS)
    for path in OPERATIONS.values():
        group, verb = path.split(".")
        for groups, prefix in ((asynchronous, "Async"), (synchronous, "")):
            kind = getattr(groups, prefix + group.title().replace("_", ""))
            assert callable(getattr(kind, verb)), f"{kind.__name__}.{verb}"


def public(kind: type) -> dict[str, object]:
    return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}


def twin_of(name: str) -> str:
    return {"aclose": "close"}.get(name, name)


def signature_of(method: object) -> str:
    """As the synchronous twin has it."""
    written = str(inspect.signature(method))  # type: ignore[arg-type]
    return re.sub(r"Async(?=[A-Z])", "", written.replace("souvenir_client.aio", "souvenir_client.sync"))


@pytest.mark.parametrize("group", [*GROUPS, None])
def test_both_clients_have_the_same_methods_with_the_same_arguments(group):
    if group is None:
        kinds = AsyncSouvenir, Souvenir
    else:
        name = group.title().replace("_", "")
        kinds = getattr(asynchronous, f"Async{name}"), getattr(synchronous, name)
    ours, twins = map(public, kinds)
    assert {twin_of(name) for name in ours} == set(twins)
    for name, method in ours.items():
        twin = twins[twin_of(name)]
        if inspect.isfunction(method):
            assert signature_of(method) == str(inspect.signature(twin)), name  # type: ignore[arg-type]
            assert inspect.getdoc(method) == inspect.getdoc(twin) or "async" in (inspect.getdoc(method) or "")


def test_every_group_is_an_attribute_of_the_client():
    with Souvenir("http://127.0.0.1:9") as client:
        assert {name for name in vars(client) if not name.startswith("_")} == set(GROUPS)


def test_everything_that_the_package_names_is_there():
    assert all(hasattr(souvenir_client, name) for name in souvenir_client.__all__)
