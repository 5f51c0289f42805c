"""A real language model, however small: what must hold whatever it answers. Run by `make test-slow`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import openai
import pytest
from pydantic import BaseModel, ConfigDict, Field

from tests.small_model import NAME, small_model

pytestmark = pytest.mark.slow


class Pet(BaseModel):
    """Said of it in the schema only; the question does not ask for JSON."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["newt", "gecko"]
    legs: list[Literal[4]] = Field(min_length=2, max_length=2)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with small_model() as address:
        yield address


@pytest.mark.parametrize(
    "question", ["Tell me a joke about the sea.", "Which animal do you keep?", "List three colours."]
)
def test_the_schema_of_a_request_constrains_what_the_model_answers(address: str, question: str):
    schema = Pet.model_json_schema()
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0, timeout=120) as client:
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
