"""Writes the parts of the client that follow from others.

Records and operations follow from the description that the application gives of itself, and the synchronous client from
the asynchronous one.

python -m scripts.build_client
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app import create_app
from scripts.client_api import ApiModules
from scripts.client_records import RecordModules
from souvenir.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "client" / "souvenir_client"

MADE = "Made from souvenir_client.aio by `python -m scripts.build_client`."
# A word of the asynchronous client, and what it is in the synchronous one; longer ones first where one holds another.
SYNCHRONOUS: tuple[tuple[str, str], ...] = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bimport asyncio\b", "import time"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bsouvenir_client\.aio\b", "souvenir_client.sync"),
    (r"\bin_turns\b", "whole"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\bhttpx\.AsyncClient\b", "httpx.Client"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\baiter_(lines|bytes)\b", r"iter_\1"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (
        r"The asynchronous client\..*",
        'The synchronous client, made from souvenir_client.aio by `python -m scripts.build_client`."""',
    ),
)


def synchronous(source: str) -> str:
    """The source of an asynchronous module as that of its synchronous twin."""
    for pattern, replacement in SYNCHRONOUS:
        source = re.sub(pattern, replacement, source)
    return source


def generated(document: Mapping[str, Any]) -> dict[Path, str]:
    """Every generated file, as it is before it is formatted, by its path below the client's package."""
    records = RecordModules(document)
    files = {Path("records") / name: text for name, text in records.files().items()}
    operations = {Path("aio") / "api" / name: text for name, text in ApiModules(document, records).files().items()}
    files |= operations
    written = {Path("aio") / path.name: path.read_text(encoding="utf-8") for path in (CLIENT / "aio").glob("*.py")}
    files |= {
        Path("sync").joinpath(*path.parts[1:]): synchronous(text) for path, text in {**operations, **written}.items()
    }
    return files


def write(folder: Path) -> None:
    """Write all of them below a folder, formatted, and remove those that nothing generates any more."""
    files = generated(document_of_the_service())
    for path in stale(folder, files):
        path.unlink()
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    paths = [str(folder / path) for path in files]
    for arguments in (["check", "--quiet", "--fix", "--select", "I,F401,RUF022"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--config", "pyproject.toml", *paths]
        subprocess.run(command, cwd=ROOT, check=True)


def stale(folder: Path, files: Mapping[Path, str]) -> Iterator[Path]:
    for part in ("records", "aio/api", "sync"):
        yield from (path for path in (folder / part).rglob("*.py") if path.relative_to(folder) not in files)


def document_of_the_service() -> dict[str, Any]:
    return create_app(Settings()).openapi()


if __name__ == "__main__":
    write(CLIENT)
