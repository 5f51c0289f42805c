"""A pytest plugin: every statement of the shared SQL that any test runs is also prepared in PostgreSQL.

Statements are noted as SQLite runs them in this process. At the end of the session those that PostgreSQL refuses are
listed, and the session fails. Sessions that run few statements, of a file or two, do not start a server for that.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import psycopg
import pytest

from benchmarks.postgres_server import postgres_server
from souvenir.store.postgres.dialect import translate
from souvenir.store.postgres.schema import SCHEMA, migrate

PACKAGE = str(Path(__file__).resolve().parent.parent / "souvenir")
OF_SQLITE = (f"{PACKAGE}/store/sqlite/", f"{PACKAGE}/transfer/reference_store.py")
"""SQLite's engine, and the import from another program's SQLite file."""
OWN = re.compile(
    r"sqlite_|typeof\(|\bPRAGMA\b|_checksums\b|\bgenerations\b|^ROLLBACK$|\b(?:TABLE|VIEW) neighbours\b", re.IGNORECASE
)
"""Statements of SQLite's engine in files that it shares: of the check, reads of damaged rows, transactions, and the
schema of a graph of an earlier time, which is in memory with both engines."""

WORKER_KEY = "refused_sql"
MIN_STATEMENTS = 200


class SharedSql:
    def __init__(self) -> None:
        self.seen: dict[str, str] = {}
        self.refused: list[str] = []

    def begin(self, connection: apsw.Connection) -> None:
        connection.exec_trace = self._note

    def _note(self, _: object, statement: str, __: object) -> bool:
        if statement not in self.seen:
            self.seen[statement] = origin_of(sys._getframe(1)) or ""
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        shared = {statement: origin for statement, origin in self.seen.items() if origin and not OWN.search(statement)}
        if len(shared) >= MIN_STATEMENTS:
            self.refused += refused(shared)
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[WORKER_KEY] = self.refused
        elif self.refused:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.refused += node.workeroutput.get(WORKER_KEY, []) if hasattr(node, "workeroutput") else []

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.refused:
            terminalreporter.section("statements that PostgreSQL refuses", red=True)
            for one in sorted(set(self.refused)):
                terminalreporter.write_line(one)


def origin_of(frame: FrameType | None) -> str | None:
    """Return the place in the package that runs a statement; None if it is SQLite's engine, or a test."""
    while frame is not None and frame.f_code.co_filename.endswith("/store/rows.py"):
        frame = frame.f_back
    file = "" if frame is None else frame.f_code.co_filename
    if frame is None or not file.startswith(PACKAGE) or file.startswith(OF_SQLITE):
        return None
    return f"{file.removeprefix(PACKAGE)}:{frame.f_lineno}"


def refused(statements: dict[str, str]) -> list[str]:
    """Return those that PostgreSQL cannot prepare, with its reason and their places."""
    found: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="postgres") as folder,
        postgres_server(Path(folder)) as address,
        psycopg.connect(address, autocommit=True, prepare_threshold=None) as connection,
    ):
        migrate(connection)
        connection.execute(f"SET search_path = {SCHEMA}")
        for statement, origin in statements.items():
            try:
                connection.execute(f"PREPARE one AS {translate(statement).text}".encode())
                connection.execute("DEALLOCATE one")
            except psycopg.Error as error:
                reason = str(error).partition("\n")[0]
                found.append(f"{origin}: {reason}: {' '.join(statement.split())[:300]}")
    return found
