"""Counts how many deliberate breaks of the durability code the tests find.

    python -m scripts.seeded_faults [NAME...]

Each patch of tests/seeded removes one protection: a sync, an order, a check. It is applied to a copy of the checkout,
in which the tests of SUITES then run, one group after the other, until the first failure. A patch that no test fails on
survives. The unchanged copy has to pass first. Prints a line per patch, and exits with status 1 if more than one
survives.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATCHES = ROOT / "tests" / "seeded"
SUITES = (
    ("tests/store", "tests/index"),
    ("tests/memories/erasure", "tests/transfer", "tests/jobs", "tests/api/test_full_disk.py"),
    ("tests/faults",),
)
"""Groups of tests, the quickest first."""

MAY_SURVIVE = 1
TIMEOUT_S = 1_200


@dataclass(frozen=True, slots=True)
class Verdict:
    """:param found_by: The first failing test; None if the patch survived."""

    found_by: str | None
    seconds: float


def copy_checkout(to: Path) -> None:
    """Copy the tracked files as they are in the checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)


def run_tests(checkout: Path) -> Verdict:
    """Run the tests until one fails.

    :raises RuntimeError: If they cannot run.
    """
    begun_s = time.monotonic()
    found = next(filter(None, (first_failure(checkout, suites) for suites in SUITES)), None)
    return Verdict(found, time.monotonic() - begun_s)


def first_failure(checkout: Path, suites: Sequence[str]) -> str | None:
    command = [sys.executable, "-m", "pytest", "--numprocesses", "auto", "--dist", "loadfile", "-x", "-q", *suites]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        command, cwd=checkout, check=False, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment
    )
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", done.stdout, re.MULTILINE)
    if failed is None:
        raise RuntimeError(f"The tests could not run:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return failed[1]


def judge(patch: Path, checkout: Path) -> Verdict:
    """Run the tests on a checkout with the patch, and take the patch back."""
    apply = ["git", "apply", str(patch)]
    subprocess.run(apply, cwd=checkout, check=True)
    try:
        return run_tests(checkout)
    finally:
        subprocess.run([*apply, "--reverse"], cwd=checkout, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names of patches; all by default")
    names = parser.parse_args().names
    chosen = [patch for patch in sorted(PATCHES.glob("*.patch")) if not names or patch.stem in names]
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder, "checkout")
        copy_checkout(checkout)
        unchanged = run_tests(checkout)
        if unchanged.found_by is not None:
            say(f"{unchanged.found_by} fails without a patch; mend it first")
            return 1
        say(f"{'unchanged':44} passes {unchanged.seconds:6.0f} s")
        survived = 0
        for patch in chosen:
            verdict = judge(patch, checkout)
            survived += verdict.found_by is None
            say(f"{patch.stem:44} {verdict.found_by or 'SURVIVED'} {verdict.seconds:6.0f} s")
    say(f"{len(chosen) - survived} of {len(chosen)} found")
    return int(survived > MAY_SURVIVE)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
