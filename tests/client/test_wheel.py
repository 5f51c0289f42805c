"""The client's wheel in an environment with only its requirements."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from importlib.metadata import distribution
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.client.running import RunningService

CLIENT = Path(__file__).resolve().parents[2] / "client"

USE = """
import sys
from souvenir_client import Souvenir, learning, __version__

with Souvenir(sys.argv[1], namespace="wheel") as souvenir:
    souvenir.add("Alice prefers tea.", user_id="alice", infer=False)
    print(__version__, souvenir.search("tea", user_id="alice")["results"][0]["memory"])
with learning(agent="wheel", server_url=sys.argv[1]):
    print(sorted(name for name in ("openai", "anthropic", "click", "rich") if name in sys.modules))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = tmp_path_factory.mktemp("sources") / "client"
    shutil.copytree(CLIENT, sources, ignore=shutil.ignore_patterns("__pycache__"))
    built = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(built)]
    subprocess.run(command, cwd=sources, check=True, capture_output=True)
    [path] = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the client and what it requires."""
    return environment_with(wheel, tmp_path_factory.mktemp("bare"))


def environment_with(wheel: Path, folder: Path, *extras: str) -> Path:
    """The interpreter of a new environment with the wheel and all that it requires, taken from this environment."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    target = next(folder.glob("lib/python*/site-packages"))
    for name in required_by([f"souvenir-client[{','.join(extras)}]"], wheel):
        copy_of(name, target)
    install = [sys.executable, "-m", "uv", "pip", "install", "--python", str(python), "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    return python


def required_by(requirements: Iterable[str], wheel: Path) -> set[str]:
    """The names of all distributions that these lead to, but for the wheel's own."""
    found: set[str] = set()
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        one = waiting.pop()
        own = one.name == "souvenir-client"
        key = f"{one.name}[{','.join(sorted(one.extras))}]"
        if key in found:
            continue
        found.add(key)
        lines = requires_of(wheel) if own else distribution(one.name).requires or []
        for line in lines:
            further = Requirement(line)
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in {"", *one.extras}):
                waiting.append(further)
    return {key.partition("[")[0] for key in found} - {"souvenir-client"}


def requires_of(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(name).decode().partition("\n\n")[0].splitlines()
    return [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]


def copy_of(name: str, target: Path) -> None:
    """Copy a distribution, and what is compiled of it: to compile that again takes seconds."""
    site = Path(str(distribution(name).locate_file("")))
    for file in distribution(name).files or []:
        for path in (site / file, Path(cache_from_source(str(site / file)))):
            if ".." not in file.parts and path.exists():
                copy = target / path.relative_to(site)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)


def run(*command: str | Path, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    names = {"PATH": os.environ["PATH"], "HOME": str(Path(str(command[0])).parent), **environment}
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, check=False, capture_output=True, text=True, env=names, input=stdin, timeout=60)


def test_the_client_requires_only_httpx(wheel: Path):
    plain = [line for line in requires_of(wheel) if "extra ==" not in line]
    assert [Requirement(line).name for line in plain] == ["httpx"]


def test_the_client_works_without_other_packages(bare: Path, service: RunningService):
    done = run(bare, "-c", USE, service.url)
    assert done.stdout.splitlines() == ["0.1.0 Alice prefers tea.", "[]"], done.stderr


def test_the_command_names_its_missing_extra(bare: Path):
    done = run(bare.with_name("souvenir"), "--help")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'pip install "souvenir-client[cli]"' in done.stderr


def test_the_command_works_with_its_extra(wheel: Path, tmp_path: Path, service: RunningService):
    python = environment_with(wheel, tmp_path / "env", "cli")
    command = python.with_name("souvenir")
    address = {"SOUVENIR_URL": service.url}
    added = run(command, "--json", "add", "Bob prefers coffee.", "--source", "people/bob", **address)
    assert added.returncode == 0, added.stderr
    found = run(command, "--json", "search", "what does Bob drink? coffee?", **address)
    answer: dict[str, Any] = json.loads(found.stdout)
    assert answer["results"][0]["text"] == "Bob prefers coffee."
    refused = run(command, "mcp", **address)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert 'pip install "souvenir-client[mcp]"' in refused.stderr


def test_the_mcp_bridge_works_with_its_extra(wheel: Path, tmp_path: Path, service: RunningService):
    command = environment_with(wheel, tmp_path / "env", "mcp").with_name("souvenir")
    request = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n'
    bridged = run(command, "mcp", stdin=request, SOUVENIR_URL=service.url)
    assert "search_memory" in str(json.loads(bridged.stdout)["result"]["tools"]), bridged.stderr
