"""A real language model, however small: what must hold whatever it answers. Run by `make test-slow`."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel, ConfigDict, Field
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import ExtractProvider, LogLevel, Settings
from tests.small_model import NAME, small_model

pytestmark = pytest.mark.slow

CALL_TIMEOUT_S = 600.0
"""Of one question; where cores are shared, the model writes a few words a second."""
JOB_TIMEOUT_S = 4 * CALL_TIMEOUT_S
POLL_S = 2.0
MAX_TOKENS = 400

SOURCE = "talk"
TRANSCRIPT = """User: I moved to Lisbon in May and work for a bakery.
Assistant: Nice! What do you bake?
User: Rye bread. We decided to use PostgreSQL for the web shop. My dog is called Rex."""
KNOWN = "The user lives in Porto."

OUTCOMES = {"add", "update", "delete", "noop", "conflict", "fallback_add", "skipped", "error"}
COUNTED = {
    "stored_count": ("add", "conflict", "fallback_add"),
    "updated_count": ("update",),
    "deleted_count": ("delete",),
    "noop_count": ("noop",),
}


class Pet(BaseModel):
    """Said of it in the schema only; the question does not ask for JSON."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["newt", "gecko"]
    legs: list[Literal[4]] = Field(min_length=2, max_length=2)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with small_model() as address:
        yield address


@pytest.fixture
def client(address: str, tmp_path: Path) -> Iterator[TestClient]:
    """The service with the model that it ships and the small one."""
    settings = Settings(
        data_dir=tmp_path / "data",
        extract_provider=ExtractProvider.OPENAI,
        extract_base_url=address,
        extract_model=NAME,
        extract_timeout_s=CALL_TIMEOUT_S,
        extract_max_tokens=MAX_TOKENS,
        log_level=LogLevel.WARNING,
    )
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("question", ["Tell me a joke.", "Which animal do you keep?", "List three colours."])
def test_the_schema_of_a_request_constrains_what_the_model_answers(address: str, question: str):
    schema = Pet.model_json_schema()
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0, timeout=CALL_TIMEOUT_S) as client:
        completion = client.chat.completions.create(
            model=NAME,
            messages=[{"role": "user", "content": question}],
            response_format={"type": "json_schema", "json_schema": {"name": "pet", "schema": schema, "strict": True}},
            temperature=0,
            max_tokens=200,
        )
    pet = Pet.model_validate_json(completion.choices[0].message.content or "")
    assert pet.legs == [4, 4]
    assert completion.model == NAME
    assert completion.usage is not None
    assert completion.usage.completion_tokens > 0


def test_a_talk_goes_through_the_whole_pipeline_and_one_call_undoes_what_came_of_it(client: TestClient, capsys: Any):
    """The model may fail to answer usefully; then nothing is changed, and the job says so."""
    client.post("/memory/add", json={"text": KNOWN, "source": SOURCE}).raise_for_status()
    before = memories(client)
    job = extracted(client, TRANSCRIPT)
    result = job["result"]
    with capsys.disabled():
        print("\n" + json.dumps(result, indent=1, ensure_ascii=False))

    calls = result["debug_trace"]["calls"]
    proposing = [call for call in calls if call["stage"] == "extract" and "items" in call]
    if "error" in result:
        assert (result["error"], result["error_code"]) == ("provider_runtime_failure", "llm_output_unusable")
        assert memories(client) == before
        return
    assert len(proposing) == 1, "the transcript is one window"
    assert result["tokens"]["extract"]["input"] > 0
    assert result["tokens"]["extract"]["output"] > 0
    actions = Counter(action["action"] for action in result["actions"])
    assert sum(call["items"] for call in proposing) == actions.total()
    assert set(actions) <= OUTCOMES
    assert {name: sum(actions[one] for one in of) for name, of in COUNTED.items()} == {
        name: result[name] for name in COUNTED
    }
    client.post(f"/memory/extract/{job['job_id']}/undo").raise_for_status()
    assert memories(client) == before


def extracted(client: TestClient, transcript: str) -> dict[str, Any]:
    body = {"messages": transcript, "source": SOURCE, "debug": True, "document_at": "2024-06-01"}
    accepted = client.post("/memory/extract", json=body)
    assert accepted.status_code == 202, accepted.text
    deadline = time.monotonic() + JOB_TIMEOUT_S
    while time.monotonic() < deadline:
        job: dict[str, Any] = client.get(accepted.json()["result_url"]).raise_for_status().json()
        if job["status"] not in ("queued", "running"):
            assert job["status"] == "completed", job
            return job
        time.sleep(POLL_S)
    raise AssertionError(f"the extraction did not end in {JOB_TIMEOUT_S:.0f} s")


def memories(client: TestClient) -> list[dict[str, Any]]:
    """Those that are not archived, as they are read."""
    answer = client.get("/memories?limit=1000").raise_for_status().json()
    return [memory for memory in answer["memories"] if not memory.get("archived")]
