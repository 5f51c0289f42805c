"""Many readers at once, or one writer alone; a waiting writer precedes new readers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Lock
from time import monotonic

import pytest

from souvenir.core.concurrency import ReadersWriterLock

PATIENCE_S = 20.0
A_MOMENT_S = 0.05


def test_readers_share_the_lock():
    lock, together = ReadersWriterLock(), Barrier(8)

    def read() -> int:
        with lock.read():
            return together.wait(PATIENCE_S)

    with ThreadPoolExecutor(8) as readers:
        assert sorted(readers.map(lambda _: read(), range(8))) == list(range(8))


def test_a_writer_has_exclusive_access():
    lock, count = ReadersWriterLock(), 0
    inside = {"readers": 0, "writers": 0}
    guard = Lock()
    seen: list[tuple[int, int]] = []

    def enter(kind: str, by: int) -> None:
        with guard:
            inside[kind] += by
            seen.append((inside["readers"], inside["writers"]))

    def read(_: int) -> None:
        with lock.read():
            enter("readers", 1)
            enter("readers", -1)

    def write(_: int) -> None:
        nonlocal count
        with lock.write():
            enter("writers", 1)
            value = count
            enter("writers", 0)
            count = value + 1
            enter("writers", -1)

    with ThreadPoolExecutor(8) as threads:
        work = [threads.submit(write if number % 3 == 0 else read, number) for number in range(900)]
        for future in work:
            future.result(PATIENCE_S)
    assert count == 300
    assert all(writers <= 1 and not (writers and readers) for readers, writers in seen)


def test_a_waiting_writer_precedes_later_readers():
    lock, order = ReadersWriterLock(), list[str]()
    writer_waits = Event()

    def write() -> None:
        writer_waits.set()
        with lock.write():
            order.append("writer")

    def read() -> None:
        with lock.read():
            order.append("reader")

    with ThreadPoolExecutor(3) as threads:
        with lock.read():
            writing = threads.submit(write)
            assert writer_waits.wait(PATIENCE_S)
            # It says that it waits just before it does: give it the moment that it needs.
            deadline = monotonic() + PATIENCE_S
            while not lock._writers_waiting:
                assert monotonic() < deadline
            reading = [threads.submit(read) for _ in range(2)]
            assert not writing.done()
        writing.result(PATIENCE_S)
        for future in reading:
            future.result(PATIENCE_S)
    assert order == ["writer", "reader", "reader"]


@pytest.mark.parametrize("side", ["read", "write"])
def test_the_lock_is_released_if_the_work_fails(side: str):
    lock = ReadersWriterLock()
    with pytest.raises(ZeroDivisionError), getattr(lock, side)():
        raise ZeroDivisionError
    with lock.write():
        pass
    with lock.read():
        pass


def test_a_waiting_reader_precedes_the_next_write_of_a_thread():
    """So a large write that releases the lock now and then admits searches."""
    lock = ReadersWriterLock()
    waiting, entered = Event(), Event()

    def read() -> None:
        waiting.set()
        with lock.read():
            entered.set()

    with ThreadPoolExecutor(1) as reader:
        with lock.write():
            future = reader.submit(read)
            assert waiting.wait(PATIENCE_S)
            assert not entered.wait(A_MOMENT_S)
        with lock.write():
            assert entered.is_set()
        future.result(PATIENCE_S)


def test_a_writer_that_times_out_admits_waiting_readers():
    lock, reading, over = ReadersWriterLock(), Event(), Event()

    def read_long() -> None:
        with lock.read():
            reading.set()
            assert over.wait(PATIENCE_S)

    def try_to_write() -> None:
        with pytest.raises(TimeoutError), lock.write(timeout_s=A_MOMENT_S):
            pytest.fail("somebody reads")

    def read() -> bool:
        with lock.read():
            return True

    with ThreadPoolExecutor(12) as threads:
        long = threads.submit(read_long)
        assert reading.wait(PATIENCE_S)
        for _ in range(3):
            writers = [threads.submit(try_to_write) for _ in range(2)]
            readers = [threads.submit(read) for _ in range(8)]
            assert all(reader.result(PATIENCE_S) for reader in readers)
            for writer in writers:
                writer.result(PATIENCE_S)
        over.set()
        long.result(PATIENCE_S)
    with lock.write(timeout_s=A_MOMENT_S):
        pass


def test_writers_that_time_out_do_not_affect_others():
    lock, inside, gave_up = ReadersWriterLock(), 0, 0
    guard = Lock()
    seen: list[int] = []

    def write(number: int) -> None:
        nonlocal inside, gave_up
        try:
            with lock.write(timeout_s=None if number % 2 else 0.0001):
                inside += 1
                seen.append(inside)
                inside -= 1
        except TimeoutError:
            with guard:
                gave_up += 1

    def read(_: int) -> None:
        with lock.read():
            seen.append(inside + 1)

    with ThreadPoolExecutor(8) as threads:
        work = [threads.submit(read if number % 3 == 0 else write, number) for number in range(3000)]
        for future in work:
            future.result(PATIENCE_S)
    assert set(seen) == {1}
    assert len(seen) + gave_up == 3000
