"""How much the tests try: a sample in each run, and everything with `make test-thorough`.

A sample finds a defect that many cases show. The long form is for a change of what a test is about, and for releases.
"""

from __future__ import annotations

import os

THOROUGH = os.environ.get("THOROUGH_TESTS") == "1"


def sampled(sample: int, thorough: int) -> int:
    """How often to try something: `sample` times, or `thorough` times in the long form."""
    return thorough if THOROUGH else sample
