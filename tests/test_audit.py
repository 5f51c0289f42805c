"""The audit of the locks: pip-audit against a PyPI on loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.markers import Marker

from tests.vendors import pypi
from tests.vendors.pypi import PyPI

ROOT = Path(__file__).resolve().parent.parent
PASSED = "Audited requirements without a known vulnerability: "
SKIPPED = "Audit of the requirements skipped: "
ADVISORY = {
    "id": "GHSA-aaaa-bbbb-cccc",
    "aliases": ["CVE-2026-1234"],
    "details": "A crafted file is executed.",
    "fixed_in": ["1.0.3", "1.0.2"],
}
ACCEPTED = """
[[tool.souvenir.accepted-advisories]]
id = "{id}"
reason = "Only its command line is affected."
expires = {expires}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PyPI]:
    with pypi.serving(tmp_path_factory.mktemp("pypi")) as running:
        yield running


@pytest.fixture
def index(server: PyPI) -> PyPI:
    """A PyPI that has the locked releases, without advisories."""
    server.releases = {release: [] for release in ("packaging/24.0", "alpha/1.0", "beta/2.0")}
    server.failing, server.silent = set(), False
    server.asked.clear()
    server.headers.clear()
    return server


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    locked = "\n".join(f"{pin} \\\n    --hash=sha256:{'0' * 64}" for pin in ("alpha==1.0", "beta==2.0"))
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "requirements-dev.txt").write_text(locked + "\n")
    (tmp_path / "requirements-slow.txt").touch()
    return tmp_path


def audited(checkout: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    unproxied = {name: value for name, value in os.environ.items() if name.lower() != "no_proxy"}
    return subprocess.run(
        [sys.executable, "-m", "scripts.audit", str(checkout)],
        cwd=ROOT,
        env=unproxied | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_requirements_without_advisories_pass_with_one_line(index, checkout):
    done = audited(checkout, index.environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{PASSED}2.\n", "")
    assert sorted(index.asked) == ["alpha/1.0", "beta/2.0", "packaging/24.0"]


def test_a_known_vulnerability_fails_with_package_version_advisory_and_fixed_versions(index, checkout):
    index.releases["alpha/1.0"] = [ADVISORY]
    index.releases["beta/2.0"] = [ADVISORY | {"id": "PYSEC-2026-1", "aliases": [], "fixed_in": []}]
    done = audited(checkout, index.environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[:2] == [
        "alpha 1.0: CVE-2026-1234 (GHSA-aaaa-bbbb-cccc), fixed in 1.0.2, 1.0.3",
        "beta 2.0: PYSEC-2026-1, no fixed version",
    ]


def test_an_accepted_advisory_passes_until_it_expires(index, checkout):
    index.releases["alpha/1.0"] = [ADVISORY]
    index.releases["beta/2.0"] = [ADVISORY | {"id": "PYSEC-2026-1", "aliases": []}]
    (checkout / "pyproject.toml").write_text(
        ACCEPTED.format(id="GHSA-aaaa-bbbb-cccc", expires="9999-01-01")
        + ACCEPTED.format(id="PYSEC-2026-1", expires="2026-01-01")
    )
    done = audited(checkout, index.environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[:2] == [
        "beta 2.0: PYSEC-2026-1, fixed in 1.0.2, 1.0.3",
        "Acceptance of PYSEC-2026-1 expired on 2026-01-01: Only its command line is affected.",
    ]


@pytest.mark.parametrize(
    "incomplete", ['reason = "x"\nexpires = 9999-01-01', 'id = "a"\nreason = ""\nexpires = 9999-01-01']
)
def test_an_acceptance_without_id_reason_or_date_fails_before_anything_is_sent(index, checkout, incomplete):
    (checkout / "pyproject.toml").write_text(f"[[tool.souvenir.accepted-advisories]]\n{incomplete}\n")
    done = audited(checkout, index.environment)
    assert done.returncode == 1
    assert done.stderr.startswith("An accepted advisory needs an id, a reason and a date in expires; correct {")
    assert index.asked == []


def test_the_locks_of_the_project_are_audited_in_full(index):
    text = "".join(
        (ROOT / lock).read_text(encoding="utf-8") for lock in ("requirements-dev.txt", "requirements-slow.txt")
    )
    pins = re.findall(r"^([\w.-]+)==([\w.+-]+)(?: ; (.*?))? \\$", text, flags=re.MULTILINE)
    needed = [f"{name}/{version}" for name, version, marker in pins if not marker or Marker(marker).evaluate()]
    index.releases |= {release: [] for release in needed}
    done = audited(ROOT, index.environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{PASSED}{len(needed)}.\n", "")
    assert sorted(index.asked) == sorted([*needed, "packaging/24.0"])


def test_a_package_that_pypi_does_not_have_is_named(index, checkout):
    del index.releases["beta/2.0"]
    done = audited(checkout, index.environment)
    assert (done.returncode, done.stdout) == (0, f"{PASSED}1; unknown to PyPI: beta.\n")


def test_an_index_without_advisories_is_skipped_after_one_request(index, checkout):
    index.releases.clear()
    done = audited(checkout, index.environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{SKIPPED}PyPI's advisories cannot be reached.\n"
    assert index.asked == ["packaging/24.0"]


@pytest.mark.thorough
def test_a_pypi_that_fails_during_the_audit_is_skipped_with_one_line(index, checkout):
    index.failing.add("beta/2.0")
    done = audited(checkout, index.environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{SKIPPED}PyPI's advisories cannot be reached.\n"


@pytest.mark.thorough
def test_a_silent_pypi_is_skipped_with_one_line(index, checkout):
    index.silent = True
    done = audited(checkout, index.environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(SKIPPED)


@pytest.mark.thorough
def test_a_network_without_pypi_is_skipped_with_one_line(checkout):
    done = audited(checkout, {"HTTPS_PROXY": "http://127.0.0.1:9"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{SKIPPED}PyPI's advisories cannot be reached.\n"


@pytest.mark.thorough
def test_a_lock_that_cannot_be_read_fails_and_is_not_skipped(index, checkout):
    (checkout / "requirements-dev.txt").write_text("alpha==1.0\n")
    done = audited(checkout, index.environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert "does not contain a hash" in done.stderr


def test_nothing_but_names_and_versions_is_sent(index, checkout, tmp_path):
    (tmp_path / ".netrc").write_text(f"machine {pypi.HOST}\nlogin user\npassword canary\n")
    (tmp_path / ".netrc").chmod(0o600)
    secrets = {"HOME": str(tmp_path), "PIP_INDEX_URL": "https://user:canary@packages.example/simple"}
    assert audited(checkout, index.environment | secrets).returncode == 0
    assert len(index.asked) == 3
    assert [header for header in index.headers if header.startswith("Authorization") or "canary" in header] == []
