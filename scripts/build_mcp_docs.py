"""Write the tables of tools in docs/mcp.md from the tools themselves; a test checks that they are current.

python -m scripts.build_mcp_docs
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from souvenir.core.settings import McpTier
from souvenir.mcp.registry import TIERS
from souvenir.mcp.tools import Tool

PAGE = Path(__file__).resolve().parent.parent / "docs" / "mcp.md"
BEGIN, END = "<!-- tools: begin -->", "<!-- tools: end -->"


def tables() -> str:
    """A heading and a Markdown table for each tier."""
    return "\n".join(line for tier in McpTier for line in _table(tier))


def page(text: str) -> str:
    """The page with the tables between their marks."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}"


def _table(tier: McpTier) -> Iterator[str]:
    yield f"\n### `{tier}`\n"
    yield "| tool | arguments (* required) | purpose | changes |"
    yield "|---|---|---|---|"
    for tool in TIERS[tier]:
        yield f"| `{tool.name}` | {_arguments(tool)} | {tool.description} | {_changes(tool)} |"


def _arguments(tool: Tool[Any]) -> str:
    schema = tool.input_schema
    return ", ".join(
        f"`{name}`{'*' if name in schema.get('required', ()) else ''}{_default(field)}"
        for name, field in schema["properties"].items()
    )


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    return f" = {default}" if isinstance(default, int | float) else ""


def _changes(tool: Tool[Any]) -> str:
    if tool.is_reader:
        return "nothing"
    return "overwrites or deletes" if tool.destructive else "adds"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
