"""How sources are paths: what lies below a path, and what a list of paths lets somebody see."""

from __future__ import annotations

from collections.abc import Sequence

SEPARATOR, PARENT = "/", ".."


def lies_in(source: str, path: str) -> bool:
    """Whether a source is the path or lies below it: `proj/a/b` lies in `proj/a`, `proj/ab` does not."""
    return source == path or source.startswith(path + SEPARATOR)


def is_visible(source: str, paths: Sequence[str] | None) -> bool:
    """Whether a source lies in one of the paths; one with a `..` segment lies in none. No paths: all are."""
    if paths is None:
        return True
    return PARENT not in source.split(SEPARATOR) and any(lies_in(source, path) for path in paths)
