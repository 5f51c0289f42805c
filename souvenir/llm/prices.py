"""What well-known models cost, in US dollars a million tokens (input, output).

From the vendors' public price lists as they were in early 2026, without discounts for caching or batches. The table
ages: it shows about what an extraction costs, and is no bill. Of a model that is not in it the cost is unknown, not 0.
"""

from __future__ import annotations

import re

_MILLION = 1_000_000

_PRICES = {
    "claude-opus-4-5": (5.0, 25.0),
    "claude-opus-4-6": (5.0, 25.0),
    "claude-sonnet-4-5": (3.0, 15.0),
    "claude-sonnet-4-6": (3.0, 15.0),
    "claude-haiku-4-5": (1.0, 5.0),
    "gpt-5": (1.25, 10.0),
    "gpt-5-mini": (0.25, 2.0),
    "gpt-5-nano": (0.05, 0.4),
    "gpt-4.1": (2.0, 8.0),
    "gpt-4.1-mini": (0.4, 1.6),
    "gpt-4.1-nano": (0.1, 0.4),
    "gpt-4o": (2.5, 10.0),
    "gpt-4o-mini": (0.15, 0.6),
    "o3": (2.0, 8.0),
    "o4-mini": (1.1, 4.4),
}

_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


def cost_usd(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """:param model: As the vendor calls it, with or without the date of its release."""
    price = _PRICES.get(_DATE.sub("", model))
    if price is None:
        return None
    return (input_tokens * price[0] + output_tokens * price[1]) / _MILLION
