"""Fixtures for all tests: no settings of the machine, and no network.

Fixtures of one subject are in the folder or the file of that subject.
"""

from __future__ import annotations

import copy
import gc
import os
import signal
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from shutil import disk_usage
from typing import Any

import apsw
import pytest
import structlog
from hypothesis import settings as hypothesis_settings
from pydantic_settings import EnvSettingsSource
from starlette import testclient

from benchmarks.service import Service
from scripts.build_config_docs import names_of
from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from souvenir.store.sqlite import disk_space
from tests.fake_embedder import FakeEmbedder
from tests.forking import ForkedPython
from tests.page.requirements import CHROMIUM, INSTALL_CHROMIUM
from tests.postgres_databases import PostgresDatabases, used_databases
from tests.shared_sql import SharedSql
from tests.thoroughness import THOROUGH, sampled
from tests.vendors.embeddings import VendorServer
from tests.whole_answers import WholeAnswers, send_whole

# Timing on a shared machine says nothing about the code, so no example has a deadline.
hypothesis_settings.register_profile("souvenir", deadline=None, max_examples=sampled(50, 100))
hypothesis_settings.load_profile("souvenir")

TESTS = Path(__file__).parent
FIRST = (
    "api/test_conformance.py",
    "page/test_many_memories.py",
    "faults/test_kills.py",
    "faults/test_restores.py",
    "faults/test_clock.py",
    "faults/replicas/test_jobs.py",
    "faults/replicas/test_rounds.py",
    "store/postgres/test_migration.py",
    "memories/erasure/test_canaries.py",
    "api/test_access_table.py",
    "memories/engine/test_state_machine.py",
    "store/test_restore_kills.py",
    "page/test_accessibility.py",
    "page/test_knowledge.py",
    "page/test_agents.py",
    "page/test_memory_drawer.py",
    "page/test_search.py",
    "page/test_sign_in.py",
    "page/test_frame.py",
    "faults/test_damage.py",
    "faults/test_power_cuts.py",
    "sync/test_sync.py",
    "client/mcp/test_embedded.py",
    "api/test_echo.py",
    "api/test_isolation.py",
    "api/test_learned_with.py",
    "api/test_app.py",
    "test_overload.py",
    "transfer/test_kill.py",
    "api/test_jobs.py",
    "models/llm/test_failures.py",
    "learning/test_pipeline_malformed.py",
    "memories/erasure/test_kill.py",
    "memories/maintenance/test_kill.py",
    "conversations/test_search_machine.py",
    "client/test_adapters_page.py",
    "client/mcp/test_bridge.py",
    "faults/test_disk_faults.py",
    "compat/test_doors.py",
    "sync/test_transfer.py",
    "learning/test_kill.py",
    "test_package.py",
    "test_architecture.py",
    "test_audit.py",
    "test_operators_page.py",
)
"""The files that take longest, begun first: one that begins last keeps a worker busy while the others have nothing.
Those of the page follow each other, since they share the program that drives their browsers."""

MEMORY_FOLDER = Path("/dev/shm")
MIN_FREE_BYTES = 2 * 2**30
SLOWEST_SHOWN = 10
seconds_of_files: dict[str, float] = defaultdict(float)
"""Set-up, call and teardown of the tests of each file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine", choices=["sqlite", "postgres"], default="sqlite", help="the engine of stores without DATABASE_URL"
    )


def pytest_configure(config: pytest.Config) -> None:
    shared_sql = SharedSql()
    config.pluginmanager.register(shared_sql)
    apsw.connection_hooks.append(shared_sql.begin)
    if "TMPDIR" not in os.environ and can_hold_files(MEMORY_FOLDER):
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY_FOLDER)
    # A shell that runs this in the background ignores Ctrl-C, and processes that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def can_hold_files(memory: Path) -> bool:
    """Tests kill processes, not machines: with databases in memory they show the same, and never wait for a disk."""
    if not memory.is_dir():
        return False
    runs_programs = not os.statvfs(memory).f_flag & os.ST_NOEXEC
    return runs_programs and disk_usage(memory).free >= MIN_FREE_BYTES


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays until the end, so the garbage collector never has to look at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        # With little left to look at, Python would look at all of it far more often than it does outside of tests.
        gc.set_threshold(700, 10, 100)
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("engine") == "postgres":
        for item in items:
            if (marker := item.get_closest_marker("sqlite_only")) is not None:
                item.add_marker(pytest.mark.skip(reason=marker.kwargs["reason"]))
    if not THOROUGH:
        left_out = [item for item in items if item.get_closest_marker("thorough") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    places = {TESTS / name: place for place, name in enumerate(FIRST)}
    if missing := [str(path) for path in places if not path.exists()]:
        raise pytest.UsageError(f"Take out of FIRST in tests/conftest.py what is not there: {', '.join(missing)}.")
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds_of_files[report.nodeid.partition("::")[0]] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the slowest files. Workers of xdist send their reports to the process that runs this."""
    if CHROMIUM is None:
        terminalreporter.write_line(INSTALL_CHROMIUM)
    if len(seconds_of_files) > 1:
        total = sum(seconds_of_files.values())
        terminalreporter.section(f"slowest of {len(seconds_of_files)} files, {total:.0f} s of tests in all")
        for file, seconds in nlargest(SLOWEST_SHOWN, seconds_of_files.items(), key=itemgetter(1)):
            terminalreporter.write_line(f"{seconds:7.1f} s  {file}")


@pytest.fixture(scope="session", autouse=True)
def _hermetic_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # In the place of the developer's own; processes that tests start read it too.
    saved = tmp_path_factory.mktemp("saved") / "config.json"
    saved.write_text("{}", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for field_name, field in Settings.model_fields.items():
            for name in names_of(field_name, field):
                patch.delenv(name, raising=False)
        patch.setenv("CONFIG_FILE", str(saved))
        patch.setitem(Settings.model_config, "env_file", None)
        patch.setenv("HF_HUB_OFFLINE", "1")
        # Test clients read every answer to its end.
        patch.setenv("EVENT_STREAM_MAX_S", "0.05")
        # The memory of this process is that of all tests, and every service would have the C library search it.
        patch.setenv("MEMORY_TRIM_ENABLED", "false")
        yield


@pytest.fixture(scope="session", autouse=True)
def _known_environments() -> Iterator[None]:
    """Read each environment once: settings are made for almost every test, and most of the time is spent on this."""
    names = {
        name.lower() for field_name, field in Settings.model_fields.items() for name in names_of(field_name, field)
    }
    read: Callable[[EnvSettingsSource], dict[str, Any]] = EnvSettingsSource.__call__
    known: dict[Any, dict[str, Any]] = {}

    def remembered(source: EnvSettingsSource) -> dict[str, Any]:
        values = frozenset((name, value) for name, value in source.env_vars.items() if name.lower() in names)
        environment = type(source), source.settings_cls, values
        if environment not in known:
            known[environment] = read(source)
        return copy.deepcopy(known[environment])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EnvSettingsSource, "__call__", remembered)
        yield


@pytest.fixture(scope="session", autouse=True)
def _forked_services() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Service, "start_process", ForkedPython)
        yield


@pytest.fixture(scope="session", autouse=True)
def _databases(pytestconfig: pytest.Config, _hermetic_settings: None) -> Iterator[PostgresDatabases | None]:
    """The databases of `--engine postgres`."""
    if pytestconfig.getoption("engine") == "sqlite":
        yield None
        return
    with used_databases() as databases:
        yield databases


@pytest.fixture(autouse=True)
def _dropped_databases(_databases: PostgresDatabases | None) -> Iterator[None]:
    yield
    if _databases is not None:
        _databases.drop_those_without_folder()


@pytest.fixture(scope="session", autouse=True)
def _whole_answers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testclient, "_TestClientTransport", WholeAnswers)
        patch.setattr(testclient.TestClient, "send", send_whole)
        yield


@pytest.fixture(scope="session", autouse=True)
def _small_reserve() -> Iterator[None]:
    # The kernel takes the space from memory (MEMORY_FOLDER), page by page, for each of thousands of stores.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk_space, "RESERVE_BYTES", 2**20)
        yield


@pytest.fixture
def unfiltered_logs() -> Iterator[None]:
    """For tests that capture log events: the level that an earlier test configured filters none of them."""
    configured = structlog.get_config()
    structlog.reset_defaults()
    yield
    structlog.configure(**configured)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def engine(settings: Settings) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        engine.warm_up()
        yield engine


@pytest.fixture
def vendor() -> Iterator[VendorServer]:
    vendor = VendorServer()
    vendor.start()
    yield vendor
    vendor.stop()
