"""The states in which a power cut can leave a disk, computed from a recorded log.

Everything up to the last sync of a file is there. Of later writes any subset is there, in any order, each whole or torn
between sectors; a later rewrite through buffers may be absent, empty, cut short or whole. Changes of a folder's entries
are there up to its last sync, and of the later ones any prefix. SQLite's shared memory (`-shm`) never survives.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.recorder import (
    ROOT,
    Acknowledged,
    Begun,
    Content,
    Entries,
    Event,
    Sync,
    Truncate,
    Write,
)

SECTORS = (512, 4096)
KEEP_SHARES = (0.0, 0.5, 1.0)
"""Shares of the unsynced writes that survive, one of which is drawn for each file."""

SHARED_MEMORY = "-shm"


@dataclass(slots=True)
class _File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Write | Truncate | Content] = field(default_factory=list)

    def sync(self) -> None:
        for event in self.pending:
            _apply(self.durable, event)
        self.pending.clear()

    def after_power_cut(self, dice: random.Random) -> bytes:
        if not self.pending:
            return bytes(self.durable)
        content, share = bytearray(self.durable), dice.choice(KEEP_SHARES)
        survivors = [event for event in self.pending if dice.random() < share]
        if dice.random() < 0.5:
            dice.shuffle(survivors)
        for event in survivors:
            _apply(content, event if share == 1.0 and dice.random() < 0.5 else _torn(event, dice))
        return bytes(content)


@dataclass(slots=True)
class _Folder:
    durable: dict[str, int] = field(default_factory=dict)
    pending: list[Entries] = field(default_factory=list)

    def sync(self) -> None:
        for event in self.pending:
            _change(self.durable, event)
        self.pending.clear()

    def after_power_cut(self, dice: random.Random) -> dict[str, int]:
        entries = dict(self.durable)
        for event in self.pending[: dice.choice((0, dice.randint(0, len(self.pending)), len(self.pending)))]:
            _change(entries, event)
        return entries


class Disk:
    """The disk after the events that were played so far."""

    def __init__(self) -> None:
        self._folders: dict[int, _Folder] = {ROOT: _Folder()}
        self._files: dict[int, _File] = {}

    def play(self, event: Event) -> None:
        match event:
            case Write(node) | Truncate(node) | Content(node):
                self._files[node].pending.append(event)
            case Sync(node):
                (self._folders.get(node) or self._files[node]).sync()
            case Entries(node, changes, folders):
                for _, entry in changes:
                    if entry is None or entry in self._folders or entry in self._files:
                        continue
                    if entry in folders:
                        self._folders[entry] = _Folder()
                    else:
                        self._files[entry] = _File()
                self._folders[node].pending.append(event)
            case Begun() | Acknowledged():
                pass

    def cut_power(self, dice: random.Random, folder: Path) -> None:
        """Write one of the possible states into an empty folder."""
        self._write(ROOT, folder, dice)

    def _write(self, node: int, path: Path, dice: random.Random) -> None:
        path.mkdir(exist_ok=True)
        for name, entry in self._folders[node].after_power_cut(dice).items():
            if entry in self._folders:
                self._write(entry, path / name, dice)
            elif not name.endswith(SHARED_MEMORY):
                (path / name).write_bytes(self._files[entry].after_power_cut(dice))


def _change(entries: dict[str, int], event: Entries) -> None:
    for name, node in event.changes:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def _apply(content: bytearray, event: Write | Truncate | Content) -> None:
    match event:
        case Write(_, offset, written):
            if len(content) < offset:
                content.extend(bytes(offset - len(content)))
            content[offset : offset + len(written)] = written
        case Truncate(_, size):
            del content[size:]
            content.extend(bytes(size - len(content)))
        case Content(_, written):
            content[:] = written


def _torn(event: Write | Truncate | Content, dice: random.Random) -> Write | Truncate | Content:
    """Return the part of a change that reached the disk: some sectors of a write, or a prefix of a content."""
    match event:
        case Write(node, offset, written):
            sector = dice.choice(SECTORS)
            cuts = range(sector - offset % sector, len(written), sector)
            if not cuts:
                return event
            begin, end = sorted(dice.choice((0, *cuts, len(written))) for _ in range(2))
            return Write(node, offset + begin, written[begin:end])
        case Content(node, written):
            return Content(node, dice.choice((b"", written[: dice.randint(0, len(written))], written)))
    return event


def nodes_named(events: Iterable[Event], suffix: str) -> set[int]:
    """Return the files of a log whose names end so."""
    return {
        node
        for event in events
        if isinstance(event, Entries)
        for name, node in event.changes
        if node is not None and name.endswith(suffix)
    }


def without_syncs(events: Sequence[Event], suffix: str) -> list[Event]:
    """Return the log of a service that does not sync the files whose names end so."""
    nodes = nodes_named(events, suffix)
    return [event for event in events if not (isinstance(event, Sync) and event.node in nodes)]
