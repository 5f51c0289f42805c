"""Every status of a vendor is mapped to one error, regardless of the body."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from souvenir.core.errors import LLMError, LLMPromptTooLong, LLMRejected, LLMUnavailable
from souvenir.core.settings import ExtractProvider, Settings
from souvenir.models.llm.failures import error_of
from souvenir.models.providers.endpoints import LLMEndpoint
from souvenir.models.providers.retry import ProviderFailure

UNAVAILABLE = {0, 408, 409, 429, *range(500, 600)}


@pytest.mark.parametrize("provider", list(ExtractProvider))
def test_every_status_is_mapped(provider):
    endpoint = LLMEndpoint.of(Settings(extract_api_key=SecretStr("k")), provider)
    for status in (0, *range(300, 600)):
        expected: type[LLMError] = LLMUnavailable if status in UNAVAILABLE else LLMRejected
        if status == 413:
            expected = LLMPromptTooLong
        made = error_of(ProviderFailure(status), endpoint)
        assert type(made) is expected, status
        assert made.message.startswith(f"The language model's provider ({provider.value})")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('{"error": {"code": "insufficient_quota"}}', LLMRejected),
        ('{"error": {"message": "your credit balance is too low"}}', LLMRejected),
        ('{"error": {"code": "context_length_exceeded"}}', LLMPromptTooLong),
        ('{"error": {"message": "prompt is too long: 210000 tokens"}}', LLMPromptTooLong),
    ],
)
def test_missing_credit_and_long_prompts_are_recognised_by_the_message(words, expected):
    endpoint = LLMEndpoint.of(Settings(extract_api_key=SecretStr("k")), ExtractProvider.OPENAI)
    for status in (400, 403, 429):
        assert type(error_of(ProviderFailure(status, words=words), endpoint)) is expected
