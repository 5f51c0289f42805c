"""What a language model is told of an extraction: the files beside this one."""

from __future__ import annotations

from pathlib import Path

from souvenir.llm.prompt_files import prompt_of
from souvenir.llm.types import Prompt

PROPOSE, PROPOSE_ALL, DECIDE = "propose", "propose_all", "decide"

_FOLDER = Path(__file__).with_name("prompts")


def prompt(name: str, user: str, *, further: str = "") -> Prompt:
    """:param user: What is asked about. :param further: What the profile of a source adds to the instructions."""
    return prompt_of(_FOLDER, name, user, further=further)


def label(asked: Prompt) -> str:
    """Name and version, as decisions hold them."""
    return f"{asked.name}@{asked.version}"
