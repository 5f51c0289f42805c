"""The key of an index, and the name of its snapshot."""

from __future__ import annotations

from typing import NamedTuple

from souvenir.core.types import PassageKind


class IndexKey(NamedTuple):
    """The key of an index. Kinds are separate: a search of one does not pay for, or depend on the words of, another."""

    namespace_id: int
    kind: PassageKind

    @property
    def labels(self) -> dict[str, int | str]:
        """Names of it in the log."""
        return {"namespace_id": self.namespace_id, "kind": self.kind.value}

    @property
    def snapshot_name(self) -> str:
        """The name of the file; those of memories keep the name from before there were other kinds."""
        return f"{self.namespace_id}" if self.kind is PassageKind.MEMORY else f"{self.namespace_id}-{self.kind}"
