"""The figures of the deadlines benchmark by hand."""

from __future__ import annotations

import json
from collections import Counter

from benchmarks.deadlines import Figures


def test_a_search_is_on_time_within_its_deadline_and_ten_percent():
    one = Figures(4, 20, [0.010, 0.022, 0.0221, 0.050], Counter({"vector": 3}))
    assert one.on_time == 0.5
    assert one.row()[-2:] == ["50.00 %", "vector 75.0 %"]
    assert Figures(4, None, [9.0], Counter()).on_time == 1


def test_the_figures_are_written_as_json():
    one = Figures(1, 20, [0.010], Counter({"vector": 1}))
    assert json.loads(json.dumps(one.record())) == {
        "callers": 1,
        "deadline_ms": 20,
        "took_s": [0.010],
        "omitted": {"vector": 1},
    }
