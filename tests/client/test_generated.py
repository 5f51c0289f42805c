"""The generated files of the client are current, and both clients have the same methods."""

from __future__ import annotations

import inspect
import re
import shutil
from pathlib import Path

import pytest

import souvenir_client
from scripts.build_client import CLIENT, is_generated, openapi_document, write
from scripts.build_sdk_docs import PAGE, sdk_page
from scripts.client_api import sdk_name
from souvenir_client import AsyncSouvenir, Souvenir
from souvenir_client.aio import groups as asynchronous
from souvenir_client.sync import groups as synchronous

OPERATIONS = sorted(
    sdk_name(operation) for methods in openapi_document()["paths"].values() for operation in methods.values()
)
GROUPS = sorted({name.split(".")[0] for name in OPERATIONS})


def files_in(client: Path) -> dict[Path, str]:
    return {path.relative_to(client): path.read_text(encoding="utf-8") for path in client.rglob("*.py")}


def test_the_generated_files_are_current(tmp_path):
    shutil.copytree(CLIENT, tmp_path / "souvenir_client", ignore=shutil.ignore_patterns("__pycache__"))
    write(tmp_path / "souvenir_client")
    assert files_in(tmp_path / "souvenir_client") == files_in(CLIENT), "run python -m scripts.build_client"


def test_every_file_of_the_generated_folders_says_that_it_is_generated():
    for folder in ("records", "aio/api", "sync"):
        files = list((CLIENT / folder).rglob("*.py"))
        assert files
        assert [path for path in files if not is_generated(path)] == []


def test_the_page_of_the_sdk_lists_the_methods_of_the_client():
    assert PAGE.read_text(encoding="utf-8") == sdk_page(openapi_document()), "run python -m scripts.build_sdk_docs"


def test_every_operation_of_the_api_is_a_method_of_both_clients():
    assert len(set(OPERATIONS)) == len(OPERATIONS)
    for name in OPERATIONS:
        group, verb = name.split(".")
        for groups, prefix in ((asynchronous, "Async"), (synchronous, "")):
            kind = getattr(groups, prefix + group.title().replace("_", ""))
            assert callable(getattr(kind, verb)), f"{kind.__name__}.{verb}"


def public(kind: type) -> dict[str, object]:
    return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}


def twin_of(name: str) -> str:
    return {"aclose": "close"}.get(name, name)


def signature_of(method: object) -> str:
    """The signature that the synchronous twin has."""
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
            assert inspect.getdoc(method) == inspect.getdoc(twin)


def test_every_group_is_an_attribute_of_the_client():
    with Souvenir("http://127.0.0.1:9") as client:
        assert {name for name in vars(client) if not name.startswith("_")} == set(GROUPS)


def test_every_public_name_of_the_package_exists():
    assert all(hasattr(souvenir_client, name) for name in souvenir_client.__all__)
