"""The figures of the overhead benchmark by hand, and the bare application that it compares with."""

from __future__ import annotations

import pytest
from pydantic import BaseModel
from starlette.testclient import TestClient

from benchmarks.overhead import ENGINE, LAYERS, Cost, CpuClock, Round, bare_app


class Question(BaseModel):
    query: str


class Answer(BaseModel):
    text: str
    note: str | None = None


def test_overhead_outside_the_engine_is_compared_with_a_bare_request():
    souvenir = Cost({"server": 0.2, "middleware": 0.3, "before the engine": 0.5, "engine": 2.0, "after": 1.0}, 2.0)
    one = Round(souvenir, Cost({"server": 0.1, "after": 0.4}, 0.0))
    assert one.outside_ratio == pytest.approx(2.0 / 0.5)
    assert one.whole_ratio == pytest.approx(4.0 / 0.5)
    assert one.engine_share == pytest.approx(0.5)


def test_the_bare_application_answers_from_the_dictionary_and_every_layer_is_timed():
    clock = CpuClock()
    app = bare_app(clock, (Question, Answer), {"who": Answer(text="Ann")})
    with TestClient(clock.around(app)) as client:
        clock.start()
        response = client.post("/search", json={"query": "who"})
    assert response.content == b'{"text":"Ann"}'
    assert clock.seconds.keys() == set(LAYERS)
    assert clock.engine_s <= clock.seconds[ENGINE]
