"""Writes souvenir/page/api-types.d.ts, the types of the API for the page, from docs/openapi.json.

python -m scripts.build_page_types

They are made by openapi-typescript, one of the packages of package.json (`make setup` installs them where npm is), from
the parts of the document that a page uses: paths, parameters of path and query, bodies, and successful responses.
Descriptions and examples are in the document itself.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.build_openapi import NAME_MAPS, OPENAPI, TEXT_KEYWORDS

ROOT = Path(__file__).resolve().parent.parent
TYPES = ROOT / "souvenir" / "page" / "api-types.d.ts"
GENERATOR = ROOT / "node_modules" / ".bin" / "openapi-typescript"


def types() -> str:
    """The declarations for the document in docs/.

    :raises FileNotFoundError: If the packages of package.json are not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "openapi.json"), Path(folder, "types.d.ts")
        source.write_text(json.dumps(_reduced(json.loads(OPENAPI.read_text(encoding="utf-8")))), encoding="utf-8")
        subprocess.run([GENERATOR, source, "--output", made], cwd=ROOT, check=True, capture_output=True)
        return made.read_text(encoding="utf-8")


def _reduced(document: Mapping[str, Any]) -> Any:
    reduced = _without_texts(document)
    for operations in reduced["paths"].values():
        for operation in operations.values():
            parameters = operation.get("parameters", [])
            operation["parameters"] = [each for each in parameters if each["in"] in ("path", "query")]
            responses = operation["responses"]
            operation["responses"] = {status: responses[status] for status in responses if status.startswith("2")}
    return reduced


def _without_texts(value: Any, *, of_names: bool = False) -> Any:
    """:param of_names: Whether the keys of the value are names, such as those of properties."""
    if isinstance(value, list):
        return [_without_texts(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_texts(each, of_names=not of_names and key in NAME_MAPS)
        for key, each in value.items()
        if of_names or not (key in TEXT_KEYWORDS or key.startswith("x-"))
    }


if __name__ == "__main__":
    TYPES.parent.mkdir(exist_ok=True)
    TYPES.write_text(types(), encoding="utf-8")
