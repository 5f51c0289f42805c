"""A virtual environment for each package, created once in the user's folder from pinned versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import progress

INSTALL_TIMEOUT_S = 1200.0


class PackageFailed(Exception):
    """A package could not be installed or run; the sentence says what stopped it."""


@dataclass(frozen=True, slots=True)
class Package:
    """What pip installs: `requirements` with all that they need, `alone` without, because that would bring torch."""

    name: str
    requirements: tuple[str, ...]
    alone: tuple[str, ...] = ()


PACKAGES = (
    Package("mem0", ("mem0ai==2.2.1", "qdrant-client==1.20.0")),
    Package("mempalace", ("mempalace==3.11.0", "chromadb==1.5.9")),
    Package("engram", ("faiss-cpu==1.15.1", "numpy==2.4.6"), alone=("engram-search==0.1.7",)),
)


def python_of(package: Package, folder: Path) -> Path:
    """The interpreter of the package's environment, which is made if it is not there or has other versions.

    :raises PackageFailed: If pip cannot install it.
    """
    home = folder.resolve() / package.name
    python, stamp = _python_in(home), home / "installed.json"
    wanted = [*package.requirements, *package.alone]
    if not stamp.exists() or json.loads(stamp.read_text(encoding="utf-8")) != wanted:
        progress(f"installing {', '.join(wanted)}")
        home.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", "--clear", str(home / "venv")])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *package.requirements])
        if package.alone:
            _run([*pip, "--no-deps", *package.alone])
        stamp.write_text(json.dumps(wanted), encoding="utf-8")
    return python


def installed(folder: Path) -> dict[str, list[str]]:
    """Everything that stands in the environments, as pip names it."""
    return {
        package.name: _run([str(python), "-m", "pip", "freeze"]).splitlines()
        for package in PACKAGES
        if (python := _python_in(folder.resolve() / package.name)).exists()
    }


def confined(home: Path, **further: str) -> Mapping[str, str]:
    """An environment in which a package finds its home in `home`, sends no reports and reaches this machine only."""
    nowhere = "http://127.0.0.1:9"
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(home),
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "http_proxy": nowhere,
        "https_proxy": nowhere,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "HF_HUB_OFFLINE": "1",
        "ANONYMIZED_TELEMETRY": "False",
        "MEM0_TELEMETRY": "False",
        "ORT_DISABLE_TELEMETRY": "1",
        **further,
    }


def _python_in(home: Path) -> Path:
    return home / "venv" / "bin" / "python"


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_TIMEOUT_S)
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise PackageFailed(f"{' '.join(command[1:])}: {' '.join(lines[-3:])}")
    return done.stdout
