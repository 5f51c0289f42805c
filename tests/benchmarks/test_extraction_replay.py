"""Recording what a model answers and playing it again, over real HTTP on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from benchmarks.extraction.replay import Asked, Player, Recorder, Recording, Reply, listening, origin_of

PATH = "/v1/chat/completions"


class Echo:
    """Answers with what it was asked; a question that says "fail" with 500."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        return Reply(500 if asked.body["messages"] == "fail" else 200, {"said": asked.body["messages"]})


def question(said: str, *, model: str = "a", prompt: str = "facts") -> dict[str, Any]:
    schema = {"title": prompt, "type": "object", "properties": {"title": {"type": "string"}}}
    return {"model": model, "messages": said, "response_format": {"json_schema": {"name": "x", "schema": schema}}}


def post(origin: str, body: dict[str, Any]) -> httpx2.Response:
    return httpx2.post(f"{origin}{PATH}", json=body, headers={"Authorization": "Bearer key"}, timeout=30)


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Echo]:
    """A file with the answer to "one", after "one" and "fail" were asked."""
    echo, path = Echo(), tmp_path / "recording.jsonl"
    with listening(echo) as upstream:
        recorder = Recorder(path, provider="openai", model="a", origin=upstream, timeout_s=30)
        with listening(recorder) as origin:
            assert post(origin, question("one")).json() == {"said": "one"}
            assert post(origin, question("fail")).status_code == 500
        recorder.close()
    return path, echo


def test_a_recorder_passes_on_the_question_and_the_key_to_the_same_path(recorded: tuple[Path, Echo]):
    _, echo = recorded
    first = echo.asked[0]
    assert first.path == PATH
    assert first.body == question("one")
    assert first.headers["Authorization"] == "Bearer key"


def test_a_recording_is_independent_of_the_model_name(recorded: tuple[Path, Echo]):
    recording = Recording.read(recorded[0])
    assert (recording.provider, recording.model, len(recording)) == ("openai", "a", 1)
    player = Player(recording)
    with listening(player) as origin:
        assert post(origin, question("one", model="b")).json() == {"said": "one"}
    assert player.missed == 0


@pytest.mark.parametrize("body", [question("two"), question("one", prompt="decisions"), question("fail")])
def test_a_question_without_a_kept_reply_is_refused_and_counted(recorded: tuple[Path, Echo], body: dict[str, Any]):
    player = Player(Recording.read(recorded[0]))
    with listening(player) as origin:
        assert post(origin, body).status_code == 400
    assert player.missed == 1


def test_a_question_without_a_recording_goes_to_the_substitute(recorded: tuple[Path, Echo]):
    player = Player(Recording.read(recorded[0]), otherwise=Echo())
    with listening(player) as origin:
        assert post(origin, question("two")).json() == {"said": "two"}
    assert player.missed == 1


def test_a_question_that_was_asked_twice_gets_its_replies_in_turn_and_then_the_last_again(tmp_path: Path):
    path = tmp_path / "recording.jsonl"
    asked = Asked(PATH, {}, question("one"))
    kept = {"prompt": asked.prompt, "sha256": asked.digest, "status": 200}
    lines = [{"provider": "openai", "model": "a"}, {**kept, "body": "first"}, {**kept, "body": "second"}]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    player = Player(Recording.read(path))
    assert [player.answer(asked).body for _ in range(3)] == ["first", "second", "second"]


def test_a_prompt_goes_by_the_title_of_its_schema_on_every_wire():
    schema = {"title": "facts", "type": "object", "properties": {}}
    bodies = [
        question("one"),
        {"format": schema},
        {"output_config": {"format": {"schema": schema}}},
        {"tools": [{"input_schema": schema}]},
    ]
    assert [Asked(PATH, {}, body).prompt for body in bodies] == ["facts"] * 4
    assert Asked(PATH, {}, {"messages": [{"content": "no schema"}]}).prompt == ""


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path):
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps({"a": 1}), encoding="utf-8")
    with pytest.raises(ValueError, match="is no recording"):
        Recording.read(path)


def test_an_address_is_split_where_its_path_begins():
    assert origin_of("https://models.example.com:8443/v1") == ("https://models.example.com:8443", "/v1")
