"""What language models are told: files, each with a version that is stored with what comes of it.

A file begins with a line `version: N`, which grows with every change of its words.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from souvenir.llm.types import Prompt

_VERSION = "version: "


def prompt_of(folder: Path, name: str, user: str, *, further: str = "") -> Prompt:
    """:param user: What is asked about. :param further: What is added to the instructions."""
    version, system = _read(folder / f"{name}.md")
    return Prompt(name, version, f"{system}\n\n{further}".rstrip(), user)


@cache
def _read(path: Path) -> tuple[str, str]:
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    if not first.startswith(_VERSION):
        raise ValueError(f"the prompt {path.name} has no version")
    return first.removeprefix(_VERSION).strip(), rest.strip()
