"""Writes docs/sdk.md: every method of the clients, by its group, beside the operation that it is.

python -m scripts.build_sdk_docs
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from scripts.build_client import ROOT, document_of_the_service
from scripts.client_operations import OPERATIONS

PAGE = ROOT / "docs" / "sdk.md"

INTRODUCTION = """\
# The SDK

Made from the code by `python -m scripts.build_sdk_docs`. `Souvenir` is described in the
[client's README](../client/README.md#the-sdk); `AsyncSouvenir` has the same methods, to be awaited. What stands behind
the star is given by name, and what has a default in the service may be left out; [http_api.md](http_api.md) says what
each means and what is answered. Methods of lists take `offset` and `limit` and answer one page with its `total`; where
the answer is an array, the list's `total` is how many there are on all pages. `agents.export` and
`transfer.export_memories` give the lines one by one (`async for` with `AsyncSouvenir`); `jobs.wait` and
`extraction.wait` wait for the end of long work.
"""


def sdk_page(document: Mapping[str, Any]) -> str:
    """In Markdown."""
    return "\n".join([INTRODUCTION, *_shared(), *_operations(document)]) + "\n"


def _shared() -> Iterator[str]:
    from souvenir_client import Souvenir

    yield "## Verbs that memory SDKs share\n\n| method | does |\n|---|---|"
    for verb in ("add", "search", "get", "get_all", "update", "delete", "delete_all", "history"):
        yield _row(f"souvenir.{verb}", getattr(Souvenir, verb), None)
    yield ""


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    from souvenir_client.sync import groups

    places = {
        OPERATIONS[operation["operationId"]]: f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    for group in sorted({place.split(".")[0] for place in places}):
        kind = getattr(groups, group.title().replace("_", ""))
        yield f"## {group}\n\n{inspect.getdoc(kind)}\n\n| method | does | operation |\n|---|---|---|"
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                yield _row(f"souvenir.{group}.{name}", method, places.get(f"{group}.{name}", ""))
        yield ""


def _row(name: str, method: Any, operation: str | None) -> str:
    parameters = [each for each in inspect.signature(method).parameters.values() if each.name != "self"]
    shown, star = [], False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not star:
            star = True
            shown.append("*")
        if each.default is each.empty:
            shown.append(each.name)
    if (star and shown[-1] == "*") or any(each.default is not each.empty for each in parameters):
        shown.append("…")
    does = (inspect.getdoc(method) or "").partition("\n")[0].partition(" `")[0].partition(":")[0].rstrip(".") + "."
    cells = [f"`{name}({', '.join(shown)})`", does]
    if operation is not None:
        cells.append(f"`{operation}`" if operation else "")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "client"))
    PAGE.write_text(sdk_page(document_of_the_service()), encoding="utf-8")
