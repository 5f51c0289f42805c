"""What the service answers in its section `transfer`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResponse:
    """What became of the files."""

    success: bool
    files_processed: int
    memories_added: int
    memories_updated: int
    memories_unchanged: int
    backup_location: str | None
    errors: list[FileError]
    error_count: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileError:
    file: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResponse:
    """What became of the lines."""

    imported: int
    skipped: int
    updated: int
    errors: list[LineError]
    error_count: int
    links: int
    links_dropped: int
    backup: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineError:
    line: int
    error: str
