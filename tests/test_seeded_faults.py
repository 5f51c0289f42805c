"""The patches of tests/seeded fit the code that they break; `make seeded-faults` counts those that tests find."""

from __future__ import annotations

import subprocess

from scripts.seeded_faults import PATCHES, ROOT
from tests.cases import for_all

NAMES = sorted(path.stem for path in PATCHES.glob("*.patch"))


def test_there_are_at_least_20_breaks():
    assert len(NAMES) >= 20


@for_all("name", NAMES)
def test_a_break_applies_to_the_code_as_it_is(name: str):
    command = ["git", "apply", "--check", str(PATCHES / f"{name}.patch")]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}Write the patch again for the changed code"
