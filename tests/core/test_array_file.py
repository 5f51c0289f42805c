"""Files of named arrays: what is written is read again, whole or row by row, and every damage is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from souvenir.core import array_file
from souvenir.core.array_file import ArrayFile, FileArray, Streamed, header_of, in_memory, take, write_arrays
from souvenir.core.errors import Unavailable

HEADER = {"state": 7, "of": "a test"}
TABLE = np.arange(60, dtype=np.float32).reshape(20, 3)


def blocks() -> list[NDArray[Any]]:
    return [TABLE[:7], TABLE[7:7], TABLE[7:].astype(np.float64)]


ARRAYS: dict[str, NDArray[Any] | Streamed] = {
    "numbers": np.array([3, 1, 2], dtype=np.int64),
    "table": Streamed(np.dtype(np.float32), (20, 3), blocks),
    "nothing": np.zeros(0, dtype=np.uint8),
    "every_second": np.arange(10, dtype=np.int32)[::2],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_arrays(tmp_path / "some.index", HEADER, ARRAYS)
    return tmp_path / "some.index"


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_file, "LARGE_FROM_BYTES", 0)


def assert_as_written(file: ArrayFile) -> None:
    assert list(file) == list(ARRAYS)
    assert len(file) == len(ARRAYS)
    assert in_memory(file, "numbers").tolist() == [3, 1, 2]
    assert take(file["table"], np.arange(20)).tolist() == TABLE.tolist()
    assert in_memory(file, "nothing").tolist() == []
    assert in_memory(file, "every_second").tolist() == [0, 2, 4, 6, 8]


def test_arrays_are_read_as_written(path: Path):
    file = ArrayFile(path, ["table"])
    assert_as_written(file)
    assert (file.header, file.is_large, file.damage()) == (HEADER, False, None)
    numbers = in_memory(file, "numbers")
    numbers[0] = 9
    assert header_of(path).keys() >= HEADER.keys()


@pytest.mark.usefixtures("all_large")
def test_named_arrays_are_left_in_a_large_file(path: Path):
    file = ArrayFile(path, ["table"])
    assert_as_written(file)
    assert isinstance(file["table"], FileArray)
    assert (file.is_large, file.damage()) == (True, None)
    for name in ("table", "missing"):
        with pytest.raises(ValueError, match=f"no array {name} in memory"):
            in_memory(file, name)


@given(rows=st.lists(st.integers(0, 19), max_size=30))
def test_rows_of_a_file_are_taken_as_those_of_an_array(rows: list[int], tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.getbasetemp() / "rows"
    path.write_bytes(b"head" + TABLE.tobytes())
    places = np.array(rows, dtype=np.int64)
    assert FileArray(path, TABLE.dtype, TABLE.shape, 4).take(places).tolist() == TABLE[places].tolist()


@pytest.mark.usefixtures("all_large")
def test_a_file_that_became_shorter_is_an_error_and_not_garbage(path: Path):
    table = ArrayFile(path, ["table"])["table"]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(Unavailable, match="shorter than it was"):
        take(table, np.arange(20))


@pytest.mark.usefixtures("all_large")
def test_a_file_on_a_failing_disk_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch):
    file = ArrayFile(path, ["table"])

    def fail(*_: Any) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.preadv", fail)
    with pytest.raises(Unavailable, match=r"some\.index cannot be read \(Input/output error\)"):
        take(file["table"], np.arange(20))
    assert "cannot be read" in str(file.damage())


@pytest.mark.usefixtures("all_large")
def test_a_file_that_was_replaced_or_removed_is_still_read(path: Path):
    table = ArrayFile(path, ["table"])["table"]
    path.unlink()
    assert take(table, np.array([19, 0])).tolist() == TABLE[[19, 0]].tolist()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:-1],
        lambda content: content[:20],
        lambda _: b"",
        lambda content: content + b"x",
        lambda content: content.replace(b'"of"', b'"if"'),
        lambda content: content[:-9] + b"\xff" + content[-8:],
    ],
)
def test_a_file_without_its_footer_is_refused(path: Path, spoil: Callable[[bytes], bytes]):
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ValueError, match=r"footer|whole file"):
        ArrayFile(path, [])
    with pytest.raises(ValueError, match=r"footer|whole file"):
        header_of(path)


def test_a_file_of_other_content_with_a_footer_is_refused(tmp_path: Path):
    write_arrays(tmp_path / "a", {"arrays": 3}, {})
    assert len(ArrayFile(tmp_path / "a", [])) == 0
    write_arrays(tmp_path / "b", HEADER, {"zeros": np.zeros(1000)})
    content = (tmp_path / "b").read_bytes()
    footer_at = content.index(b'{"state"')
    (tmp_path / "b").write_bytes(content[footer_at:])
    with pytest.raises(ValueError, match="shorter than its arrays"):
        ArrayFile(tmp_path / "b", [])


def test_flipped_bytes_of_an_array_are_found_when_it_is_read(path: Path, monkeypatch: pytest.MonkeyPatch):
    content = path.read_bytes()
    at = content.index(TABLE.tobytes()) + 17
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(ValueError, match=r"some\.index does not hold the table"):
        ArrayFile(path, ["table"])["table"]
    monkeypatch.setattr(array_file, "LARGE_FROM_BYTES", 0)
    assert ArrayFile(path, ["table"]).damage() == "some.index does not hold the table that were written"
