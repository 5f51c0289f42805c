"""Look the locked packages up in PyPI's advisories, with pip-audit; exit 1 if one has a known vulnerability.

    python -m scripts.audit           this checkout
    python -m scripts.audit ROOT      another one

PyPI receives the names and versions of the packages and nothing else. If its advisories cannot be reached, or do not
arrive in time, one line says that the audit was skipped, and the exit status is 0: an outage does not fail a build.

An advisory that does not concern this project is accepted in pyproject.toml, with the reason and the day from which the
audit fails again; CONTRIBUTING.md shows the format.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# The first one contains requirements.txt, requirements-otel.txt and requirements-sync.txt (tests/test_architecture.py).
LOCKS = ("requirements-dev.txt", "requirements-slow.txt")

# pip-audit takes minutes where nothing answers, and passes where every package is unknown: a proxy that serves packages
# without advisories. One release that PyPI has tells both in advance.
PROBE = "packaging==24.0"
PROBE_TIMEOUT_S = 10
AUDIT_TIMEOUT_S = 60
CONNECTION_TIMEOUT_S = 5
# pip-audit reports some failures of the network with the first text, and ends with an exception of these at others.
UNREACHABLE = ("your network may be blocking", "requests.exceptions.", "urllib3.exceptions.", "ServiceError")

HELP = "Raise the version in pyproject.toml and run make lock, or accept an advisory as CONTRIBUTING.md describes."


class AuditSkipped(Exception):
    """PyPI's advisories could not be read; the message gives the reason."""


class AuditFailed(Exception):
    """The audit cannot run as it is configured; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """An advisory that does not fail the audit before the day on which it expires."""

    advisory: str
    reason: str
    expires: date


@dataclass(frozen=True, slots=True)
class Finding:
    package: str
    version: str
    advisory: str
    aliases: tuple[str, ...]
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        aliases = f" ({', '.join(self.aliases)})" if self.aliases else ""
        fixed = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "no fixed version"
        return f"{self.package} {self.version}: {self.advisory}{aliases}, {fixed}"


@dataclass(frozen=True, slots=True)
class Report:
    """:param unknown: Packages that PyPI does not have, so that nothing is known of them."""

    audited: int
    unknown: tuple[str, ...]
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, dependencies: Sequence[dict[str, Any]]) -> Report:
        known = [entry for entry in dependencies if "skip_reason" not in entry]
        return cls(
            audited=len(known),
            unknown=tuple(entry["name"] for entry in dependencies if "skip_reason" in entry),
            findings=tuple(
                Finding(
                    package=entry["name"],
                    version=entry["version"],
                    advisory=found["id"],
                    aliases=tuple(found["aliases"]),
                    fixed_in=tuple(found["fix_versions"]),
                )
                for entry in known
                for found in entry["vulns"]
            ),
        )


def acceptances(pyproject: Path) -> list[Acceptance]:
    settings = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    accepted = []
    for entry in settings.get("tool", {}).get("souvenir", {}).get("accepted-advisories", []):
        match entry:
            case {"id": str(advisory), "reason": str(reason), "expires": date() as expires} if advisory and reason:
                accepted.append(Acceptance(advisory, reason, expires))
            case _:
                raise AuditFailed(f"An accepted advisory needs an id, a reason and a date in expires; correct {entry}.")
    return accepted


def report_of(arguments: Sequence[str], *, requirements: str = "", timeout_s: int) -> Report:
    """Run pip-audit and read its report.

    :param requirements: Its standard input.
    :raises AuditSkipped: If the advisories cannot be reached.
    """
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
        command += ["--timeout", str(CONNECTION_TIMEOUT_S), "--cache-dir", cache, *arguments]
        # Without NETRC, credentials in ~/.netrc would be sent.
        environment = {**os.environ, "NETRC": os.devnull}
        try:
            done = subprocess.run(
                command,
                input=requirements,
                env=environment,
                timeout=timeout_s,
                capture_output=True,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise AuditSkipped(f"PyPI's advisories did not arrive within {timeout_s} s") from late
    if done.stdout.strip():
        return Report.of(json.loads(done.stdout)["dependencies"])
    if any(text in done.stderr for text in UNREACHABLE):
        raise AuditSkipped("PyPI's advisories cannot be reached")
    raise AuditFailed(f"pip-audit ended without a report:\n{done.stderr.strip()}")


def audit(root: Path, accepted: Sequence[Acceptance], today: date) -> Report:
    probe = report_of(["--no-deps", "--requirement", "/dev/stdin"], requirements=PROBE, timeout_s=PROBE_TIMEOUT_S)
    if probe.unknown:
        raise AuditSkipped("PyPI's advisories cannot be reached")
    locks = [f"--requirement={root / lock}" for lock in LOCKS]
    ignored = [f"--ignore-vuln={each.advisory}" for each in accepted if today < each.expires]
    return report_of(["--require-hashes", *locks, *ignored], timeout_s=AUDIT_TIMEOUT_S)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Look the locked packages up in PyPI's advisories.")
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="checkout; this one if omitted")
    root: Path = parser.parse_args(arguments).root
    today = datetime.now(UTC).date()
    try:
        accepted = acceptances(root / "pyproject.toml")
        report = audit(root, accepted, today)
    except AuditSkipped as skipped:
        print(f"Audit of the requirements skipped: {skipped}.")
        return 0
    except AuditFailed as failed:
        print(failed, file=sys.stderr)
        return 1
    unknown = f"; unknown to PyPI: {', '.join(report.unknown)}" if report.unknown else ""
    if not report.findings:
        print(f"Audited requirements without a known vulnerability: {report.audited}{unknown}.")
        return 0
    for finding in report.findings:
        print(finding, file=sys.stderr)
    for each in accepted:
        if each.expires <= today:
            print(f"Acceptance of {each.advisory} expired on {each.expires}: {each.reason}", file=sys.stderr)
    print(HELP, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
