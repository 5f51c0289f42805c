"""What a language model did not give."""

from __future__ import annotations

from souvenir.errors.unavailable import Unavailable


class LLMError(Unavailable):
    """No message below holds a part of a prompt, an answer or a key.

    What was asked before it failed was paid for: `attempts` requests, their tokens, and what they cost in dollars, None
    where that is not known.
    """

    code = "llm_failed"
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0


class LLMUnavailable(LLMError):
    code = "llm_unavailable"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class LLMRejected(LLMError):
    code = "llm_rejected"


class LLMPromptTooLong(LLMRejected):
    """For this question: the model may well answer shorter ones."""

    code = "llm_prompt_too_long"


class LLMRefused(LLMError):
    code = "llm_refused"


class LLMOutputUnusable(LLMError):
    """`raw` is what the model wrote last: never shown, never logged."""

    code = "llm_output_unusable"

    def __init__(self, raw: str, reason: str) -> None:
        super().__init__(f"The language model's answer cannot be used: {reason}; try again, or set another model")
        self.raw = raw
        self.reason = reason
