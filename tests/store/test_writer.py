"""The writer thread: group commits, waiting and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import apsw
import pytest

from souvenir.core.errors import Conflict, DiskFull, Overloaded, ServiceClosing, Unavailable
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.store.sqlite.connections import open_writer
from souvenir.store.sqlite.disk_space import Reserve
from souvenir.store.sqlite.generations import CommitLog
from souvenir.store.sqlite.schema import migrate
from souvenir.store.sqlite.writer import Writer

PATIENCE_S = 20.0


class Bench:
    """A writer on a table with a constraint (no negative numbers), and the commits of SQLite."""

    def __init__(self, path: Path, *, queue_max: int = 100, timeout_s: float = PATIENCE_S) -> None:
        self.path = path
        self.commits = 0
        connection = open_writer(path)
        connection.execute("CREATE TABLE numbers (number INTEGER PRIMARY KEY CHECK (number >= 0))")
        migrate(connection)
        commits = CommitLog(connection, path.with_name("marker"), ServiceWarnings())
        reserve = Reserve(path, ServiceWarnings())
        connection.set_commit_hook(self._count_commit)
        self.writer = Writer(connection, commits=commits, reserve=reserve, queue_max=queue_max, timeout_s=timeout_s)
        self.callers = ThreadPoolExecutor(max_workers=32)

    def _count_commit(self) -> bool:
        self.commits += 1
        return False

    def write(self, number: int) -> int:
        return self.writer.write(inserting(number))

    def in_background(self, number: int) -> Future[int]:
        """Queue a write in the background; return once it is in the queue."""
        waiting = self.writer.waiting
        future = self.callers.submit(self.write, number)
        until(lambda: self.writer.waiting > waiting)
        return future

    @contextmanager
    def held_up(self) -> Iterator[None]:
        """Keep the writer busy inside of the block, so that writes queue up."""
        busy, go_on = Event(), Event()

        def work(_: apsw.Connection) -> None:
            busy.set()
            assert go_on.wait(PATIENCE_S)

        holding = self.callers.submit(self.writer.run_alone, work)
        assert busy.wait(PATIENCE_S)
        try:
            yield
        finally:
            go_on.set()
            holding.result(PATIENCE_S)

    def stored(self) -> list[int]:
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return [number for (number,) in connection.execute("SELECT number FROM numbers ORDER BY rowid")]
        finally:
            connection.close()

    def close(self) -> None:
        self.writer.close()
        self.callers.shutdown()


def inserting(number: int) -> Callable[[apsw.Connection], int]:
    def work(connection: apsw.Connection) -> int:
        connection.execute("INSERT INTO numbers VALUES (?)", (number,))
        return number

    return work


def until(happened: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not happened():
        assert monotonic() < deadline, "it did not happen in time"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "numbers.db")
    yield bench
    bench.close()


def test_queued_writes_share_one_commit(bench: Bench):
    with bench.held_up():
        waiting = [bench.in_background(number) for number in range(20)]
        assert bench.commits == 0
    assert [future.result(PATIENCE_S) for future in waiting] == list(range(20))
    assert bench.commits == 1
    assert bench.stored() == list(range(20))


def test_writes_run_in_arrival_order(bench: Bench):
    order: list[tuple[str, int]] = []

    def submit(number: int) -> Future[None]:
        waiting = bench.writer.waiting

        def work(_: apsw.Connection) -> None:
            order.append(("work", number))

        future = bench.callers.submit(lambda: bench.writer.write(work, lambda _: order.append(("told", number))))
        until(lambda: bench.writer.waiting > waiting)
        return future

    with bench.held_up():
        waiting = [submit(number) for number in range(5)]
    for future in waiting:
        future.result(PATIENCE_S)
    assert order == [("work", number) for number in range(5)] + [("told", number) for number in range(5)]


def test_a_failing_write_of_a_group_fails_alone(bench: Bench):
    def taken(_: apsw.Connection) -> None:
        raise Conflict("it is taken")

    with bench.held_up():
        first, bad, last = bench.in_background(1), bench.in_background(-1), bench.in_background(2)
        refused = bench.callers.submit(bench.writer.write, taken)
        until(lambda: bench.writer.waiting == 4)
    assert (first.result(PATIENCE_S), last.result(PATIENCE_S)) == (1, 2)
    with pytest.raises(Unavailable) as caught:
        bad.result(PATIENCE_S)
    assert isinstance(caught.value.__cause__, apsw.ConstraintError)
    with pytest.raises(Conflict, match="it is taken"):
        refused.result(PATIENCE_S)
    assert bench.stored() == [1, 2]
    assert bench.commits == 1


def test_a_write_that_fails_halfway_is_rolled_back(bench: Bench):
    def half(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO numbers VALUES (7)")
        connection.execute("INSERT INTO numbers VALUES (-7)")

    with pytest.raises(Unavailable):
        bench.writer.write(half)
    assert bench.write(8) == 8
    assert bench.stored() == [8]


def test_a_disk_error_that_ends_the_transaction_fails_the_whole_group(bench: Bench):
    """SQLite rolls back everything if it has no statement journal when the disk is full."""

    def fill(connection: apsw.Connection) -> None:
        connection.pragma("max_page_count", 1)
        try:
            connection.execute("INSERT INTO blobs VALUES (zeroblob(100000))")
        finally:
            assert not connection.in_transaction

    bench.writer.run_alone(lambda connection: connection.execute("CREATE TABLE blobs (blob BLOB)"))
    told: list[int] = []
    with bench.held_up():
        waiting: list[Future[Any]] = [bench.in_background(1)]
        waiting.append(bench.callers.submit(bench.writer.write, inserting(2), told.append))
        until(lambda: bench.writer.waiting == 2)
        waiting.append(bench.callers.submit(bench.writer.write, fill))
        until(lambda: bench.writer.waiting == 3)
        waiting.append(bench.in_background(3))
    for future in waiting:
        with pytest.raises(DiskFull, match="is full, so nothing was written"):
            future.result(PATIENCE_S)
    assert (bench.stored(), told) == ([], [])
    bench.writer.run_alone(lambda connection: connection.pragma("max_page_count", 1_000_000))
    assert bench.write(4) == 4
    assert bench.stored() == [4]


def test_a_failed_write_does_not_reach_the_indexes(bench: Bench):
    told: list[int] = []
    for number in (1, -1, 2):
        try:
            bench.writer.write(inserting(number), told.append)
        except Unavailable:
            assert number == -1
    assert told == [1, 2]


def test_a_write_returns_after_the_index_update(bench: Bench):
    told = Event()
    bench.writer.write(inserting(1), lambda _: told.set())
    assert told.is_set()


def test_a_write_succeeds_even_if_the_index_update_fails(bench: Bench):
    def fail(_: int) -> None:
        raise ZeroDivisionError

    assert bench.writer.write(inserting(1), fail) == 1
    assert bench.write(2) == 2
    assert bench.stored() == [1, 2]


def test_work_run_alone_sees_exactly_the_earlier_writes_committed(bench: Bench):
    with bench.held_up():
        before = bench.in_background(1)
        alone = bench.callers.submit(
            bench.writer.run_alone, lambda connection: (connection.in_transaction, bench.stored())
        )
        until(lambda: bench.writer.waiting == 2)
        after = bench.in_background(2)
    assert alone.result(PATIENCE_S) == (False, [1])
    assert (before.result(PATIENCE_S), after.result(PATIENCE_S)) == (1, 2)
    assert bench.commits == 2


def test_a_failure_of_work_run_alone_reaches_only_its_caller(bench: Bench):
    def fail(_: apsw.Connection) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.writer.run_alone(fail)
    assert bench.write(1) == 1


def test_the_writer_survives_an_error_while_it_handles_a_full_disk(bench: Bench):
    def deny_free_pages(_action: int, name: str | None, *_: str | None) -> int:
        return apsw.SQLITE_DENY if name == "freelist_count" else apsw.SQLITE_OK

    def full(_: apsw.Connection) -> None:
        raise apsw.FullError("the disk is full")

    bench.writer.run_alone(lambda connection: setattr(connection, "authorizer", deny_free_pages))
    with pytest.raises(Unavailable):
        bench.writer.write(full)
    assert bench.write(1) == 1


def test_a_full_queue_refuses_at_once_with_a_retry_time(tmp_path: Path):
    bench = Bench(tmp_path / "numbers.db", queue_max=2)
    with bench.held_up():
        waiting = [bench.in_background(number) for number in (1, 2)]
        with pytest.raises(Overloaded) as caught:
            bench.write(3)
        assert caught.value.retry_after_s >= 1
    assert [future.result(PATIENCE_S) for future in waiting] == [1, 2]
    assert bench.write(4) == 4
    bench.close()
    assert bench.stored() == [1, 2, 4]


def test_a_write_that_times_out_in_the_queue_is_refused_and_never_runs(tmp_path: Path):
    bench = Bench(tmp_path / "numbers.db", timeout_s=0.05)
    with bench.held_up(), pytest.raises(Overloaded, match="waited too long"):
        bench.write(1)
    bench.close()
    assert bench.stored() == []


def test_a_write_that_began_in_time_is_awaited_to_its_end(tmp_path: Path):
    bench = Bench(tmp_path / "numbers.db", timeout_s=0.05)

    def slow(connection: apsw.Connection) -> int:
        Event().wait(0.2)
        return inserting(1)(connection)

    assert bench.writer.write(slow) == 1
    bench.close()
    assert bench.stored() == [1]


def test_closing_finishes_queued_writes_and_refuses_new_ones(bench: Bench):
    with bench.held_up():
        waiting = [bench.in_background(number) for number in range(5)]
        closing = bench.callers.submit(bench.writer.close)
        until(lambda: bench.writer.waiting == 6)
        with pytest.raises(ServiceClosing):
            bench.write(9)
        assert not closing.done()
    closing.result(PATIENCE_S)
    assert [future.result(PATIENCE_S) for future in waiting] == list(range(5))
    with pytest.raises(ServiceClosing):
        bench.writer.run_alone(lambda _: None)
    assert bench.stored() == list(range(5))


def test_closing_with_a_full_queue_finishes_all_queued_writes(tmp_path: Path):
    bench = Bench(tmp_path / "numbers.db", queue_max=2)
    with bench.held_up():
        waiting = [bench.in_background(number) for number in (1, 2)]
        closing = bench.callers.submit(bench.writer.close)
    closing.result(PATIENCE_S)
    assert [future.result(PATIENCE_S) for future in waiting] == [1, 2]
    bench.close()
    assert bench.stored() == [1, 2]
