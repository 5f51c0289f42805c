"""What language models are told: files beside this one, each with a version that is stored with what comes of it.

A file begins with a line `version: N`, which grows with every change of its words.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from souvenir.llm.types import Prompt

PROPOSE, PROPOSE_ALL, DECIDE = "propose", "propose_all", "decide"

_FOLDER = Path(__file__).with_name("prompts")
_VERSION = "version: "


def prompt(name: str, user: str, *, further: str = "") -> Prompt:
    """:param user: What is asked about. :param further: What the profile of a source adds to the instructions."""
    version, system = _read(name)
    return Prompt(name, version, f"{system}\n\n{further}".rstrip(), user)


def label(asked: Prompt) -> str:
    """Name and version, as decisions hold them."""
    return f"{asked.name}@{asked.version}"


@cache
def _read(name: str) -> tuple[str, str]:
    first, _, rest = (_FOLDER / f"{name}.md").read_text(encoding="utf-8").partition("\n")
    if not first.startswith(_VERSION):
        raise ValueError(f"the prompt {name} has no version")
    return first.removeprefix(_VERSION).strip(), rest.strip()
