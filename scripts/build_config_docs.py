"""Writes the table of settings in docs/configuration.md from `Settings`; a test checks that it is current.

python -m scripts.build_config_docs
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from souvenir.core.settings import Settings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"


def table() -> str:
    """A Markdown row per setting: name, default, meaning and aliases."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        own, *aliases = names_of(name, field)
        also = f" Also read from {', '.join(f'`{alias}`' for alias in aliases)}." if aliases else ""
        rows.append(f"| `{own}` | {_shown(field.default)} | {field.description}{also} |")
    return "\n".join(rows)


def names_of(name: str, field: FieldInfo) -> list[str]:
    """The names of a setting in the environment: its own name, then its aliases."""
    aliases = field.validation_alias.choices if isinstance(field.validation_alias, AliasChoices) else [name]
    return [str(alias).upper() for alias in aliases]


def _shown(default: Any) -> str:
    if default is None or default == ():
        return "unset"
    if isinstance(default, tuple):
        return f"`{','.join(default)}`"
    return f"`{default.value if isinstance(default, Enum) else default}`"


def page(text: str) -> str:
    """The page with the table between its marks."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
