"""Records what a process asks of its disk: writes, truncations, syncs, and changes of folders, in order.

SQLite's files are recorded by a VFS that inherits the default one and becomes the default; those of Python by wrappers
around the functions of `os` and `open`. Of a file that Python or a library writes through buffers, the content is
recorded at its next sync, rename or acknowledgement. Everything outside of the recorded folder is ignored.

It changes the process for good: install it only in one that does nothing else.
"""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import apsw

SYNCS_ITS_FOLDER = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
"""Kinds of files with whose first sync SQLite syncs the folder too, if it opened them with the right to create them."""

_WRITING = os.O_WRONLY | os.O_RDWR


class Write(NamedTuple):
    """Bytes at an offset of a file."""

    node: int
    offset: int
    content: bytes


class Truncate(NamedTuple):
    """The file has this size from now on."""

    node: int
    size: int


class Content(NamedTuple):
    """A file that was written through buffers: its whole content now."""

    node: int
    content: bytes


class Sync(NamedTuple):
    """A file, or a folder, was synced."""

    node: int


class Entries(NamedTuple):
    """Names of a folder and their files or folders from now on, in one step; None removes the name."""

    node: int
    changes: tuple[tuple[str, int | None], ...]
    folders: tuple[int, ...] = ()
    """The nodes that are folders."""


class Begun(NamedTuple):
    """An operation of the service begins; `operation` is the ledger's."""

    operation: Any


class Acknowledged(NamedTuple):
    """The operation with this number was answered with success."""

    number: int
    operation: Any


Event = Write | Truncate | Content | Sync | Entries | Begun | Acknowledged
ROOT = 0
"""The node of the recorded folder."""


@dataclass(slots=True)
class _Node:
    number: int
    entries: dict[str, _Node] | None = None
    content: bytearray = field(default_factory=bytearray)
    opened_by_sqlite: int = 0
    buffered: bool = False


class Recorder:
    """The log of one folder, which must be empty at first."""

    def __init__(self, folder: Path) -> None:
        self.events: list[Event] = []
        self._folder = str(folder.resolve())
        self._root = _Node(ROOT, {})
        self._count = 1
        self._lock = RLock()
        self._buffered: dict[str, _Node] = {}

    def install(self) -> None:
        """Record this process from now on."""
        self._vfs = _RecordingVFS(self)
        self._wrap_files()
        self._wrap_folders()

    @contextmanager
    def doing(self, number: int, operation: Any) -> Iterator[None]:
        """Record the begin of an operation, and its acknowledgement if the block ends without an error."""
        self._note(Begun((number, operation)))
        yield
        self._note(Acknowledged(number, operation))

    def _note(self, event: Event) -> None:
        with self._lock:
            for path in list(self._buffered):
                if Path(path).exists():
                    self._refresh(path)
            self._buffered.clear()
            self.events.append(event)

    # --- the tree ----------------------------------------------------------------------------------------------

    def inside(self, path: Any, dir_fd: int | None = None) -> str | None:
        """The absolute path if it is in the folder."""
        if isinstance(path, int):
            path = _path_of(path)
        text = os.fsdecode(path)
        if dir_fd is not None:
            text = f"{_path_of(dir_fd)}/{text}"
        text = os.path.abspath(text)  # noqa: PTH100 - a symbolic link is renamed or removed itself
        return text if text.startswith(self._folder + "/") or text == self._folder else None

    def _find(self, path: str) -> _Node | None:
        node: _Node | None = self._root
        for part in path[len(self._folder) :].split("/"):
            if part and node is not None:
                node = (node.entries or {}).get(part)
        return node

    def _parent(self, path: str) -> tuple[_Node, str]:
        folder, _, name = path.rpartition("/")
        parent = self._root if folder == self._folder else self._known(folder)
        return parent, name

    def _known(self, path: str) -> _Node:
        """The node of a path that exists; one that was made by other means, such as a library, is recorded now."""
        node = self._find(path)
        if node is None:
            parent, name = self._parent(path)
            assert parent.entries is not None
            is_folder = Path(path).is_dir()
            node = parent.entries[name] = _Node(self._count, {} if is_folder else None)
            self._count += 1
            self.events.append(Entries(parent.number, ((name, node.number),), (node.number,) if is_folder else ()))
        return node

    def _refresh(self, path: str) -> _Node:
        """Record the content of a file that was written through buffers."""
        node = self._known(path)
        if node.entries is None and not node.opened_by_sqlite:
            with _real_open(path, "rb") as file:
                content = file.read()
            if content != node.content:
                node.content[:] = content
                self.events.append(Content(node.number, content))
        self._buffered.pop(path, None)
        return node

    # --- what the wrappers and the VFS report -----------------------------------------------------------------

    def write(self, node: _Node, offset: int, content: bytes) -> None:
        end = offset + len(content)
        if len(node.content) < end:
            node.content.extend(bytes(end - len(node.content)))
        node.content[offset:end] = content
        self.events.append(Write(node.number, offset, content))

    def truncate(self, node: _Node, size: int) -> None:
        del node.content[size:]
        node.content.extend(bytes(size - len(node.content)))
        self.events.append(Truncate(node.number, size))

    def remove(self, path: str) -> None:
        parent, name = self._parent(path)
        self._buffered.pop(path, None)
        if parent.entries is not None and parent.entries.pop(name, None) is not None:
            self.events.append(Entries(parent.number, ((name, None),)))

    def rename(self, source: str, target: str) -> None:
        """Record a rename that was done, in one step if it stays in one folder."""
        (old, old_name), (new, new_name) = self._parent(source), self._parent(target)
        assert old.entries is not None
        assert new.entries is not None
        node = old.entries.pop(old_name)
        new.entries[new_name] = node
        moved = ((new_name, node.number),)
        if old is new:
            self.events.append(Entries(old.number, ((old_name, None), *moved)))
        else:
            self.events += [Entries(new.number, moved), Entries(old.number, ((old_name, None),))]

    def sync(self, path: str, *, buffered: bool = False) -> None:
        node = self._refresh(path) if buffered else self._known(path)
        self.events.append(Sync(node.number))

    # --- wrappers ----------------------------------------------------------------------------------------------

    def _wrap_files(self) -> None:
        self._replace_open()
        lock = self._lock

        def at_descriptor(real: Callable[..., Any], then: Callable[[str, tuple[Any, ...], Any, int], None]) -> Any:
            @wraps(real)
            def wrapped(descriptor: Any, *arguments: Any) -> Any:
                path = self.inside(descriptor)
                if path is None:
                    return real(descriptor, *arguments)
                with lock:
                    place = os.lseek(descriptor, 0, os.SEEK_CUR) if isinstance(descriptor, int) else 0
                    answer = real(descriptor, *arguments)
                    then(path, arguments, answer, place)
                return answer

            return wrapped

        def synced(path: str, _: tuple[Any, ...], __: Any, ___: int) -> None:
            self.sync(path, buffered=True)

        def written(path: str, arguments: tuple[Any, ...], count: int, place: int) -> None:
            offset = arguments[1] if len(arguments) > 1 else place
            self.write(self._known(path), offset, bytes(arguments[0])[:count])

        def resized(path: str, arguments: tuple[Any, ...], _: Any, __: int) -> None:
            self.truncate(self._known(path), arguments[0])

        def allocated(path: str, arguments: tuple[Any, ...], _: Any, __: int) -> None:
            node = self._known(path)
            self.truncate(node, max(len(node.content), sum(arguments)))

        for name, then in (
            *(("fsync", synced), ("fdatasync", synced)),
            *(("write", written), ("pwrite", written)),
            *(("truncate", resized), ("ftruncate", resized), ("posix_fallocate", allocated)),
        ):
            setattr(os, name, at_descriptor(getattr(os, name), then))

    def _replace_open(self) -> None:
        def opened(real: Callable[..., Any], is_writing: Callable[..., bool]) -> Any:
            @wraps(real)
            def wrapped(file: Any, *arguments: Any, **named: Any) -> Any:
                path = None if isinstance(file, int) else self.inside(file, named.get("dir_fd"))
                if path is None:
                    return real(file, *arguments, **named)
                with self._lock:
                    answer = real(file, *arguments, **named)
                    node = self._known(path)
                    if is_writing(*arguments, **named) and node.entries is None:
                        self._buffered[path] = node
                return answer

            return wrapped

        def by_mode(mode: str = "r", *_: Any, **__: Any) -> bool:
            return mode.strip("bt") != "r"

        def by_flags(flags: int, *_: Any, **__: Any) -> bool:
            return bool(flags & _WRITING)

        builtins.open = io.open = opened(_real_open, by_mode)
        os.open = opened(os.open, by_flags)

    def _wrap_folders(self) -> None:
        os.unlink, os.remove, os.rmdir = (self._removing(real) for real in (os.unlink, os.remove, os.rmdir))
        os.rename, os.replace = self._renaming(os.rename), self._renaming(os.replace)
        os.mkdir, os.link = self._making(os.mkdir), self._linking(os.link)

    def _removing(self, real: Callable[..., None]) -> Any:
        @wraps(real)
        def wrapped(path: Any, *, dir_fd: int | None = None) -> None:
            with self._lock:
                real(path, dir_fd=dir_fd)
                if inside := self.inside(path, dir_fd):
                    self.remove(inside)

        return wrapped

    def _renaming(self, real: Callable[..., None]) -> Any:
        @wraps(real)
        def wrapped(source: Any, target: Any, **named: Any) -> None:
            old, new = self.inside(source), self.inside(target)
            with self._lock:
                if old is not None:
                    self._refresh(old)
                real(source, target, **named)
                if old is not None and new is not None:
                    self.rename(old, new)

        return wrapped

    def _making(self, real: Callable[..., None]) -> Any:
        @wraps(real)
        def wrapped(path: Any, *arguments: Any, **named: Any) -> None:
            with self._lock:
                real(path, *arguments, **named)
                if inside := self.inside(path, named.get("dir_fd")):
                    self._known(inside)

        return wrapped

    def _linking(self, real: Callable[..., None]) -> Any:
        @wraps(real)
        def wrapped(source: Any, target: Any, **named: Any) -> None:
            with self._lock:
                real(source, target, **named)
                if (old := self.inside(source)) and (new := self.inside(target)):
                    node, (parent, name) = self._refresh(old), self._parent(new)
                    assert parent.entries is not None
                    parent.entries[name] = node
                    self.events.append(Entries(parent.number, ((name, node.number),)))

        return wrapped

    def opened_by_sqlite(self, path: str) -> _Node:
        with self._lock:
            node = self._refresh(path)
            node.opened_by_sqlite += 1
            return node

    @property
    def lock(self) -> RLock:
        return self._lock


_real_open = builtins.open


def _path_of(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


class _RecordingVFS(apsw.VFS):
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        super().__init__("recording", "", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        inside = None if path is None else self._recorder.inside(path)
        if inside is None:
            return super().xOpen(name, flags)
        return _RecordedFile(self._recorder, inside, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        with self._recorder.lock:
            super().xDelete(filename, syncdir)
            if inside := self._recorder.inside(filename):
                self._recorder.remove(inside)
                if syncdir:
                    self._recorder.sync(inside.rpartition("/")[0])


class _RecordedFile(apsw.VFSFile):
    def __init__(self, recorder: Recorder, path: str, name: Any, flags: list[int]) -> None:
        self._recorder, self._path = recorder, path
        self._syncs_folder = bool(flags[0] & SYNCS_ITS_FOLDER and flags[0] & apsw.SQLITE_OPEN_CREATE)
        with recorder.lock:
            super().__init__("unix", name, flags)
            self._node = recorder.opened_by_sqlite(path)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        with self._recorder.lock:
            super().xWrite(data, offset)
            self._recorder.write(self._node, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        with self._recorder.lock:
            super().xTruncate(newsize)
            self._recorder.truncate(self._node, newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        with self._recorder.lock:
            super().xSync(flags)
            self._recorder.events.append(Sync(self._node.number))
            if self._syncs_folder:
                self._syncs_folder = False
                self._recorder.sync(self._path.rpartition("/")[0])

    def xClose(self) -> None:  # noqa: N802
        with self._recorder.lock:
            super().xClose()
            self._node.opened_by_sqlite -= 1
