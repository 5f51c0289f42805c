"""The wheel of the service: its files, and that it works outside of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.metadata import EntryPoint, PathDistribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    built = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(built)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [path] = built.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's files, as pip would install them."""
    site = tmp_path_factory.mktemp("site")
    wheel.extractall(site)
    return site


def shipped(folder: str) -> dict[str, Path]:
    """The files below a folder of the checkout by their paths in it, without compiled modules and the page's types."""
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT / folder).as_posix(): path for path in files if not path.name.endswith(".d.ts")}


def test_the_wheel_holds_the_package_the_model_and_the_privacy_rules_and_nothing_else(wheel):
    expected = {f"souvenir/{name}": path for name, path in shipped("souvenir").items()}
    for folder in ("models", "config"):
        expected |= {f"souvenir/resources/{folder}/{name}": path for name, path in shipped(folder).items()}
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == set(expected)
    assert [name for name, path in expected.items() if wheel.read(name) != path.read_bytes()] == []


def test_the_command_is_an_entry_point_of_the_package(installed):
    [folder] = installed.glob("*.dist-info")
    [command] = PathDistribution(folder).entry_points
    assert command == EntryPoint("souvenir-server", "souvenir.command_line:main", "console_scripts")


def test_an_installation_finds_its_model_and_rules_and_opens_a_store(installed, tmp_path):
    code = "import sys; from souvenir.command_line import main; sys.exit(main(['check']))"
    environment = {**os.environ, "PYTHONPATH": str(installed), "DATA_DIR": str(tmp_path / "data")}
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "souvenir.db").touch(mode=0o600)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/data/souvenir.db is sound\n"), done.stderr


def test_an_installation_has_the_memory_manager_of_the_documentation(installed, tmp_path):
    code = (
        "from souvenir.conversations import MemoryConfig, MemoryManager; MemoryManager(MemoryConfig(history_db='m.db'))"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment, check=False, stderr=subprocess.PIPE
    )
    assert done.returncode == 0, done.stderr
