"""Runs the service with a shifted clock: `python -m benchmarks.faults.shifted_clock FILE`.

The file holds the seconds by which the clock is ahead; it is read at each look at the clock, so that the clock can jump
while the service runs. Monotonic clocks are not shifted.
"""

from __future__ import annotations

import runpy
import sys
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

from souvenir.core import timestamps

_time, _time_ns = time.time, time.time_ns


def main() -> None:
    file = Path(sys.argv[1])

    def ahead_s() -> int:
        return int(file.read_text())

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(seconds=ahead_s())

    vars(timestamps)["datetime"] = Shifted
    time.time = lambda: _time() + ahead_s()
    time.time_ns = lambda: _time_ns() + ahead_s() * 10**9
    sys.argv = ["app.py"]
    runpy.run_path("app.py", run_name="__main__")


if __name__ == "__main__":
    main()
