"""The threat model names tests that exist, and every row of its statements names one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.cases import for_all

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "security.md"
REFERENCE = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def statements() -> list[str]:
    """The rows of tables whose last column is `tests`, without their heads."""
    rows: list[str] = []
    in_table = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.endswith("| tests |"):
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            rows.append(line)
    return rows


def test_the_page_has_statements():
    assert len(statements()) > 30


@for_all("row", statements())
def test_every_statement_names_a_test(row: str):
    named = REFERENCE.findall(row.rsplit("|", 2)[1])
    assert named, "name a test in the last column"
    assert row.count("::") == len(named)


def test_every_test_that_the_page_names_exists():
    named = REFERENCE.findall(PAGE.read_text(encoding="utf-8"))
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []
