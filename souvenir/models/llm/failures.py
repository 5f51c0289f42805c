"""Errors of failed requests to a language model. The server's message may repeat prompt and key, and is never shown.

Servers word their errors differently; if a comparison of words misses one, the error is only less specific.
"""

from __future__ import annotations

from http import HTTPStatus
from math import ceil

from souvenir.core.errors import LLMError, LLMPromptTooLong, LLMRejected, LLMUnavailable
from souvenir.models.providers.endpoints import LLMEndpoint
from souvenir.models.providers.retry import ProviderFailure, asked_delay_s, is_transient

MAX_RETRY_AFTER_S = 3600

_TOO_LONG = ("context length", "context_length", "context size", "context window", "prompt is too long")
_NO_CREDIT = ("insufficient_quota", "billing_error", "billing_not_active", "credit balance", "spend_limit")


def error_of(failure: ProviderFailure, endpoint: LLMEndpoint) -> LLMError:
    """Return `LLMUnavailable` if the same request may succeed later, else `LLMRejected`."""
    name, status = f"The language model's provider ({endpoint.provider.value})", failure.status
    if status == 0:
        return LLMUnavailable(f"{name} cannot be reached; try again later, or correct EXTRACT_BASE_URL")
    if status == HTTPStatus.PAYMENT_REQUIRED or _says(failure, _NO_CREDIT):
        return LLMRejected(f"{name} has no credit left for this key; top it up, or set another EXTRACT_API_KEY")
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or _says(failure, _TOO_LONG):
        return LLMPromptTooLong(
            f"{name} takes no request of this length; set an EXTRACT_MODEL that reads more, or less EXTRACT_MAX_TOKENS"
        )
    if is_transient(status):
        asked_s = asked_delay_s(failure.headers)
        return LLMUnavailable(
            f"{name} takes no more requests now; try again later, or raise its limits"
            if status == HTTPStatus.TOO_MANY_REQUESTS
            else f"{name} failed with status {status}; try again later, or look at its log",
            retry_after_s=min(MAX_RETRY_AFTER_S, ceil(asked_s)) if asked_s else 1,
        )
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            advice = "refused the key; correct EXTRACT_API_KEY"
        case HTTPStatus.NOT_FOUND:
            advice = f"has no model {endpoint.model!r}; fetch it there, or correct EXTRACT_MODEL or EXTRACT_BASE_URL"
        case _:
            advice = f"refused the request (status {status}); correct EXTRACT_MODEL or EXTRACT_BASE_URL"
    return LLMRejected(f"{name} {advice}")


def too_late(endpoint: LLMEndpoint) -> LLMUnavailable:
    return LLMUnavailable(
        f"The language model's provider ({endpoint.provider.value}) did not answer within {endpoint.timeout_s:g} s; "
        "try again later, or raise EXTRACT_TIMEOUT_S"
    )


def open_error(failure: LLMUnavailable, left_s: float) -> LLMUnavailable:
    """Return the error of a call that the open circuit breaker rejects."""
    return LLMUnavailable(failure.message, retry_after_s=max(1, ceil(left_s)))


def _says(failure: ProviderFailure, words: tuple[str, ...]) -> bool:
    return any(word in failure.words for word in words)
