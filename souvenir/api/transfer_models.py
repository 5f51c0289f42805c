"""What exports, imports and builds take and answer."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import Source, without_trailing_slash
from souvenir.errors import InvalidRequest, UnknownStrategy
from souvenir.transfer.importing import Strategy
from souvenir.transfer.lines import SourceRemap
from souvenir.types import JsonObject

NDJSON = "application/x-ndjson"

_BACKUP = "pre_import_20250402_093000"


class LineError(BaseModel):
    line: int = Field(description="Its number in the file, from 1; the header counts.")
    error: str


class ImportResponse(BaseModel):
    """What became of the lines."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "imported": 1203,
                    "skipped": 0,
                    "updated": 0,
                    "errors": [{"line": 17, "error": "text: Field required"}],
                    "error_count": 1,
                    "links": 12,
                    "links_dropped": 0,
                    "backup": _BACKUP,
                }
            ]
        }
    )

    imported: int = Field(description="Stored as new memories.")
    skipped: int = Field(description="Left out by `smart`, as they are there already.")
    updated: int = Field(description="Memories that `smart` changed.")
    errors: list[LineError] = Field(description="The first 1000 lines that could not be stored.")
    error_count: int = Field(description="How many there are.")
    links: int = Field(description="Made between imported memories.")
    links_dropped: int = Field(description="Left out, as their other end is not among the lines that were stored.")
    backup: str | None = Field(description="Made before; `POST /restore` goes back to it.")


class BuildRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"sources": ["MEMORY.md", "memory/*.md"]}]})

    sources: Annotated[list[Source], Field(min_length=1, max_length=1000)] | None = Field(
        default=None,
        description="Files or globs below WORKSPACE_DIR; `MEMORY.md`, `about-dk/*.md` and `memory/*.md` without it.",
    )


class FileError(BaseModel):
    file: str = Field(description="Its path below WORKSPACE_DIR.")
    error: str


class BuildResponse(BaseModel):
    """What became of the files."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "success": True,
                    "files_processed": 2,
                    "memories_added": 14,
                    "memories_updated": 1,
                    "memories_unchanged": 30,
                    "backup_location": "backups/pre_build_20250402_093000",
                    "errors": [],
                    "error_count": 0,
                    "message": "2 files: 14 memories added, 1 updated, 30 unchanged",
                }
            ]
        }
    )

    success: bool = Field(description="Whether every file could be read.")
    files_processed: int
    memories_added: int
    memories_updated: int
    memories_unchanged: int = Field(description="Sections whose text is stored as it is.")
    backup_location: str | None = Field(description="Below DATA_DIR; made before the first change, if there was one.")
    errors: list[FileError] = Field(description="The first 1000 files that could not be used.")
    error_count: int = Field(description="How many there are.")
    message: str

    @classmethod
    def of(cls, result: JsonObject) -> Self:
        unchanged = result["sections"] - result["added"] - result["updated"]
        files = f"{result['processed']} file{'' if result['processed'] == 1 else 's'}"
        message = f"{files}: {result['added']} memories added, {result['updated']} updated, {unchanged} unchanged"
        if result["gone"]:
            message += f"; {result['gone']} of sections that are no longer there were left as they are"
        if result["error_count"]:
            message += f"; {result['error_count']} files could not be used"
        return cls(
            success=not result["error_count"],
            files_processed=result["processed"],
            memories_added=result["added"],
            memories_updated=result["updated"],
            memories_unchanged=unchanged,
            backup_location=None if result["backup"] is None else f"backups/{result['backup']}",
            errors=result["errors"],
            error_count=result["error_count"],
            message=message,
        )


def strategy_named(name: str) -> Strategy:
    """:raises UnknownStrategy: If there is none of that name."""
    if name == "smart+extract":
        raise UnknownStrategy(name, "no language model is configured that could extract facts")
    if name not in set(Strategy):
        raise UnknownStrategy(name, "there is none of that name")
    return Strategy(name)


def remap_of(text: str | None) -> SourceRemap | None:
    """`old=new` as paths; the first `=` parts them.

    :raises InvalidRequest: If one of the two is missing.
    """
    if text is None:
        return None
    old, _, new = text.partition("=")
    old, new = without_trailing_slash(old), without_trailing_slash(new)
    if not old or not new:
        raise InvalidRequest("source_remap takes two source paths as old=new")
    return SourceRemap(old, new)
