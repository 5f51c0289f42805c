"""Bridges without a configured service find or start the local one, share it, and the last one stops it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.client.cli.entry import souvenir
from tests.client.mcp.bridges import BridgeProcess
from tests.client.mcp.scripted import ScriptedMcp
from tests.client.running import free_port

SMALL_SERVICE = Path(__file__).parent / "small_service.py"
WAIT_S = 60.0


class Machine:
    """A home folder with the service's folder, and bridges that are started there."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.home = folder / "service"
        self.state = folder / "state"
        self.bridges = ExitStack()
        python = self.home / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec {sys.executable} {SMALL_SERVICE} "$PWD"\n', encoding="utf-8")
        python.chmod(0o755)
        (self.home / "souvenir").mkdir()
        (self.home / "app.py").touch()

    def bridge(self, home: str | None = None, api_key: str = "", **variables: str) -> BridgeProcess:
        """:param home: As SOUVENIR_HOME says it; the folder of the service's code unless given."""
        named = {"SOUVENIR_HOME": str(self.home) if home is None else home, "SOUVENIR_API_KEY": api_key, **variables}
        started = BridgeProcess("--port", str(self.port), cwd=self.home, XDG_STATE_HOME=str(self.state), **named)
        return self.bridges.enter_context(started)

    @property
    def told(self) -> list[str]:
        """What the services that ran have noted down."""
        path = self.home / "told"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def events(self, kind: str) -> list[str]:
        return [line.split()[1] for line in self.told if line.split()[0] == kind]

    def wait_for(self, kind: str, count: int) -> None:
        """Until that was noted down so often; the service is no child of the test that it could wait for."""
        end = time.monotonic() + WAIT_S
        while len(self.events(kind)) < count:
            assert time.monotonic() < end, self.told
            time.sleep(0.01)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    with machine.bridges:
        yield machine
    machine.wait_for("ended", len(machine.events("started")))


def pid_of(bridge: BridgeProcess, request_id: int) -> int:
    """Of the service that answers it."""
    return int(bridge.ask("tools/list", request_id)["result"]["pid"])


def test_bridges_started_concurrently_share_one_service_until_the_last_ends(machine):
    bridges = [machine.bridge(api_key="k1") for _ in range(3)]
    for number, bridge in enumerate(bridges):
        bridge.send("initialize", number)
    pids = {bridge.receive()["result"]["pid"] for bridge in bridges}
    assert [str(pid) for pid in pids] == machine.events("started")
    # Whoever started it may be killed with all that it started: the others keep what they have.
    for bridge in bridges[:2]:
        bridge.process.kill()
        bridge.process.wait(WAIT_S)
    assert pid_of(bridges[2], 9) in pids
    assert bridges[2].close() == 0
    machine.wait_for("ended", 1)
    assert machine.events("started") == machine.events("ended")
    assert {line.split()[2] for line in machine.told if line.startswith("asked")} == {"k1"}


def test_programs_that_share_a_service_use_their_own_users(machine):
    named = [{"USER_ID": "mira"}, {"USER_ID": "bob"}, {"USER_ID": "bob", "MCP_NAMESPACE": "team"}, {}]
    states = [machine.bridge(**variables).ask("tools/list", 1)["result"] for variables in named]
    assert len({state["pid"] for state in states}) == 1
    assert [state["namespace"] for state in states] == ["mira", "bob", "team", None]
    # Nor does the first of them say for the service who is meant.
    assert {state["own"] for state in states} == {None}
    agent = machine.bridge(USER_ID="bob", SOUVENIR_AGENT="helper").ask("tools/list", 1)["result"]
    assert (agent["path"], agent["namespace"]) == ("/mcp/helper", None)


def test_a_program_with_another_database_than_the_shared_one_is_refused(machine, tmp_path):
    first = machine.bridge(SQLITE_PATH=str(tmp_path / "one.db"))
    assert "result" in first.ask("tools/list", 1)
    other = machine.bridge(DATA_DIR=str(tmp_path / "data")).ask("tools/list", 1)["error"]["message"]
    assert str(tmp_path / "one.db") in other
    assert "--port" in other
    assert "result" in machine.bridge(DB_PATH=str(tmp_path / "x" / ".." / "one.db")).ask("tools/list", 1)
    assert "result" in machine.bridge().ask("tools/list", 1)
    assert len(machine.events("asked")) == 3


def test_a_killed_service_is_restarted_and_the_request_retried(machine):
    bridge = machine.bridge()
    first = pid_of(bridge, 1)
    os.kill(first, signal.SIGTERM)
    machine.wait_for("ended", 1)
    for number in range(2, 6):
        bridge.send("tools/call", number)
    assert {bridge.receive()["id"] for _ in range(4)} == {2, 3, 4, 5}
    assert machine.events("started")[0] == str(first)
    assert len(machine.events("started")) == 2
    assert sorted(machine.events("asked")) == ["1", "2", "3", "4", "5"]


def test_acknowledged_work_finishes_after_the_last_bridge_ends(machine):
    bridge = machine.bridge()
    bridge.send("wait", 1)
    machine.wait_for("asked", 1)
    bridge.process.kill()
    bridge.process.wait(WAIT_S)
    # The next one comes while the first service still works: it waits for its end, and starts its own.
    following = machine.bridge()
    (machine.home / "go on").touch()
    assert "result" in following.ask("tools/call", 2)


def test_a_running_service_is_used_and_outlives_its_bridges(machine):
    running = ScriptedMcp()
    running.port = machine.port
    running.get = {"/health": {"service": "memories"}, "/health/ready": {"ready": True}}
    running.start()
    bridge = machine.bridge(home="")
    assert "result" in bridge.ask("tools/list", 1)
    assert bridge.close() == 0
    assert machine.told == []
    assert [(one.path, "x-api-key" in one.headers) for one in running.requests[:2]] == [
        ("/health", False),
        ("/health/ready", False),
    ]
    running.stop()


@pytest.mark.parametrize("said", [{"service": "files"}, b"<html>"])
def test_a_foreign_service_gets_neither_key_nor_message(machine, said):
    other = ScriptedMcp()
    other.port = machine.port
    other.get = {"/health": said}
    other.start()
    bridge = machine.bridge(api_key="k1")
    error = bridge.ask("initialize", 1)["error"]
    assert "is not Souvenir" in error["message"]
    assert "--port" in error["message"]
    assert [(one.path, "k1" in str(one.headers)) for one in other.requests] == [("/health", False)]
    assert machine.told == []
    other.stop()


def test_without_a_service_or_folder_the_bridge_says_what_to_do_and_continues(machine):
    # The folder of an editor's project may hold anybody's code: nothing is run from there.
    bridge = machine.bridge(home="")
    for number in range(2):
        error = bridge.ask("initialize", number)["error"]
        assert "SOUVENIR_HOME" in error["message"]
        assert "SOUVENIR_URL" in error["message"]
    assert machine.told == []


def test_a_failed_start_is_reported_and_the_next_request_tries_again(machine):
    (machine.home / "refuse").touch()
    bridge = machine.bridge()
    for number in range(5):
        bridge.send("initialize", number)
    log = machine.state / "souvenir" / f"embedded-{machine.port}.log"
    for _ in range(5):
        error = bridge.receive()["error"]
        assert "The setting PORT cannot be used: it is odd" in error["message"]
        assert str(log) in error["message"]
    assert log.read_text(encoding="utf-8").count("it is odd") < 5
    (machine.home / "refuse").unlink()
    assert "result" in bridge.ask("initialize", 9)


def test_an_agent_with_a_slash_is_refused_with_a_remedy(machine):
    refused = souvenir("mcp", "--agent", "a/b", "--port", str(machine.port))
    assert refused.returncode == 2
    assert "'a/b' is not a valid agent: use a name without a slash" in refused.stderr
