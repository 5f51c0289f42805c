"""A whole store in one file that any program can read, and back into an empty store of either engine.

An archive is JSON lines in UTF-8. The first line names the format, the version of the schema and the greatest id that
each table ever gave. A line with `table`, `columns` and `rows` follows for each table, each after those that it refers
to, and then that number of rows in the order of the primary key: arrays of numbers, texts, null, and
`{"base64": "..."}` for bytes. The last line counts all rows.

The same store always makes the same bytes: nothing in them is about the export. The signature is a file next to it
(`souvenir.transfer.archive_signature`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from souvenir.core.errors import InvalidRequest, StoreUnusable
from souvenir.core.files import sync
from souvenir.core.settings import Settings
from souvenir.store import meta
from souvenir.store.sqlite.schema import SCHEMA_VERSION
from souvenir.transfer.archive_signature import require_signed, sign, signature_path
from souvenir.transfer.migration import Say, opened
from souvenir.transfer.migration_rows import PAGE_BYTES, Row, Table, set_references, tables, without_references
from souvenir.transfer.migration_stores import MovedStore, require_empty, require_finished_jobs

FORMAT = 1
MARK = "archive"
"""The value in `meta` of a store whose import is not finished."""

_EXPORT = ("The export", "look at it, and export again")
_IMPORT = ("The import", "look at it, delete all of the target, and import again")


def export_archive(settings: Settings, path: Path, say: Say) -> None:
    """Write the archive of the store and its signature; no service may use the store meanwhile.

    :raises InvalidRequest: If the file exists. :raises StoreUnusable: If the store cannot be read, or is not sound.
    """
    if path.exists():
        raise InvalidRequest(f"{path} exists already; name a new file")
    partial = path.with_name(path.name + ".partial")
    with opened(settings, is_target=False, work=_EXPORT) as store:
        meta.require_no_migration(store.connection)
        require_finished_jobs(store)
        store.require_sound()
        digest = hashlib.sha256()
        try:
            # A file that a killed export left may be readable by others, or be a symbolic link made by another user.
            partial.unlink(missing_ok=True)
            with (
                os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
                store.reading(),
            ):
                for line in _lines(store, say):
                    digest.update(line)
                    file.write(line)
                file.flush()
                os.fsync(file.fileno())
            store.require_alone()
            # First, so that a kill leaves no archive without its signature.
            signature = sign(settings, path, digest.digest())
            os.replace(partial, path)
        except OSError as error:
            raise StoreUnusable(
                f"{path} could not be written ({error}); make space for it, and export again"
            ) from error
        finally:
            partial.unlink(missing_ok=True)
        sync(path.absolute().parent)
    say(f"{path} is the whole store, and {signature.path.name} its signature by the key {signature.public_key}")


def import_archive(settings: Settings, path: Path, say: Say, *, public_key: str | None, unsigned: bool) -> None:
    """Fill an empty store with an archive.

    :param public_key: The key that must have signed it; None for any.
    :param unsigned: Accept one without a signature, unless a key must have signed it.
    :raises InvalidRequest: If it is no archive, was changed, or was signed with another key.
    :raises StoreUnusable: If the store is not empty or cannot be written.
    """
    digest = _digest_of(path)
    if not unsigned or public_key is not None or signature_path(path).exists():
        say(f"{path} was signed by the key {require_signed(path, digest, public_key)}")
    with path.open("rb") as file, opened(settings, is_target=True, work=_IMPORT) as store:
        reader = _Reader(path, file)
        counters = reader.header()
        require_empty(store)
        store.begin(MARK)
        for table in tables():
            copied = _fill(store, table, reader)
            if copied:
                say(f"{table.name}: {copied} rows")
        reader.end()
        store.complete(counters)
        made = hashlib.sha256()
        with store.reading():
            for line in _lines(store, _quietly):
                made.update(line)
        if made.digest() != digest:
            raise StoreUnusable(
                f"{store.name} differs from {path} after the import; delete all of the target, and report this"
            )
        store.end()
    say(f"{reader.rows} rows of {path} are in {store.name}, all compared")


def _quietly(_: str) -> None:
    pass


# --- writing ---------------------------------------------------------------------------------------------------------


def _lines(store: MovedStore, say: Say) -> Iterator[bytes]:
    counters = {table: last for table, last in sorted(store.counters().items()) if last}
    yield _line({"souvenir_archive": FORMAT, "schema": SCHEMA_VERSION, "counters": counters})
    total = 0
    for table in tables():
        count = table.count(store.connection)
        yield _line({"table": table.name, "columns": table.columns, "rows": count})
        for page in table.pages(store.connection):
            yield b"".join(_line([_written(value) for value in row]) for row in page)
        if count:
            say(f"{table.name}: {count} rows")
        total += count
    yield _line({"end": total})


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _written(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


# --- reading ---------------------------------------------------------------------------------------------------------


class _Reader:
    """Reads the lines of an archive in order, and refuses what is none."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._number = 0
        self.rows = 0

    def header(self) -> Mapping[str, int]:
        """Return the greatest ids.

        :raises InvalidRequest: If this release cannot read the archive.
        """
        found = self._next()
        if not isinstance(found, dict) or found.get("souvenir_archive") != FORMAT:
            raise InvalidRequest(f"{self._path} is no archive of the format {FORMAT}; name a file of `export-archive`")
        if found.get("schema") != SCHEMA_VERSION:
            raise InvalidRequest(
                f"{self._path} is of a release with the schema {found.get('schema')}, and this one has "
                f"{SCHEMA_VERSION}; import it with that release, and upgrade then"
            )
        counters = found.get("counters")
        if not isinstance(counters, dict) or not all(map(_is_count, counters.values())):
            raise self._broken("should have the greatest id of each table")
        return counters

    def pages(self, table: Table) -> Iterator[list[Row]]:
        """Yield the rows of the next table, which must be this one."""
        found = self._next()
        if not isinstance(found, dict) or found.get("table") != table.name:
            raise self._broken(f"should begin the table {table.name}")
        if found.get("columns") != list(table.columns) or not _is_count(found.get("rows")):
            raise self._broken(f"should have the columns of the table {table.name} and the number of its rows")
        page: list[Row] = []
        size = 0
        for _ in range(found["rows"]):
            begin = self._file.tell()
            page.append(self._row(len(table.columns)))
            size += self._file.tell() - begin
            if size >= PAGE_BYTES:
                yield page
                page, size = [], 0
        if page:
            yield page

    def end(self) -> None:
        if self._next() != {"end": self.rows} or self._file.readline():
            raise self._broken("should be the end, with the number of rows")

    def _row(self, columns: int) -> Row:
        found = self._next()
        if not isinstance(found, list) or len(found) != columns:
            raise self._broken(f"should be a row of {columns} values")
        self.rows += 1
        try:
            return tuple(map(_read, found))
        except (TypeError, ValueError) as error:
            raise self._broken(f"has a value that no row has ({error})") from error

    def _next(self) -> Any:
        self._number += 1
        try:
            return json.loads(self._file.readline())
        except (ValueError, RecursionError) as error:
            raise self._broken("is no JSON") from error

    def _broken(self, what: str) -> InvalidRequest:
        return InvalidRequest(f"{self._path} is damaged: its line {self._number} {what}; export it again")


def _read(value: Any) -> Any:
    """:raises TypeError, ValueError: If a database cannot store the value."""
    match value:
        case {"base64": str(content), **others} if not others:
            return base64.b64decode(content, validate=True)
        case bool() | list() | dict():
            raise TypeError("neither a number nor a text nor null nor bytes")
        case int() if not -(2**63) <= value < 2**63:
            raise ValueError("an integer of more than 64 bits")
        case float() if not math.isfinite(value):
            raise ValueError("a number that is not finite")
        case str():
            value.encode()
    return value


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _fill(store: MovedStore, table: Table, reader: _Reader) -> int:
    """Insert the rows of a table; references of rows to others of it follow, since those may come later."""
    copied = 0
    references: list[Row] = []
    for page in reader.pages(table):
        references += [row for row in page if table.refers_to_itself(row)]
        with store.connection:
            store.insert(table, without_references(table, page))
        copied += len(page)
    if references:
        with store.connection:
            set_references(table, store.connection, references)
    return copied


def _digest_of(path: Path) -> bytes:
    """:raises InvalidRequest: If there is no such file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read ({error.strerror}); name a file of `export-archive`") from error
