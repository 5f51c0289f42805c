"""Every error of the client is in the error tree, and its docstring draws that tree."""

from __future__ import annotations

import re

import httpx
import pytest

from souvenir_client import errors


def subclasses(of: type[Exception]) -> set[str]:
    return {of.__name__}.union(*(subclasses(one) for one in of.__subclasses__()))


def test_the_docstring_contains_every_error():
    drawn = set(re.findall(r"^ +(?:[│├└─ ]*)([A-Z][A-Za-z]+)", errors.__doc__ or "", re.MULTILINE))
    assert drawn == subclasses(errors.SouvenirError)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "InvalidRequest"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (409, "Conflict"),
        (412, "PreconditionFailed"),
        (422, "InvalidRequest"),
        (429, "Overloaded"),
        (500, "ServerFailed"),
        (503, "ServerFailed"),
    ],
)
def test_a_status_raises_its_error(status, name):
    assert errors.error_class(status).__name__ == name


def test_the_test_service_restarts_on_its_port(own_service):
    assert httpx.get(f"{own_service.url}/health").json()["status"] == "ok"
    own_service.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{own_service.url}/health")
    own_service.start()
    assert httpx.get(f"{own_service.url}/health").json()["status"] == "ok"
