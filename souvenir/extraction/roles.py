"""The words that transcripts have for who speaks."""

from __future__ import annotations

from souvenir.extraction.turns import TurnRole

ROLES = {
    **dict.fromkeys(("user", "human", "customer", "me"), TurnRole.USER),
    **dict.fromkeys(
        ("assistant", "ai", "ai assistant", "bot", "chatbot", "agent", "claude", "chatgpt", "gpt", "gemini", "copilot"),
        TurnRole.ASSISTANT,
    ),
    **dict.fromkeys(("system", "developer"), TurnRole.SYSTEM),
    **dict.fromkeys(("tool", "function", "tool result", "tool_result", "observation"), TurnRole.TOOL),
    "model": TurnRole.ASSISTANT,
}
"""By casefolded word, as a field of a message has it."""

SPOKEN_ROLES = {word: role for word, role in ROLES.items() if word not in ("me", "model")}
"""Those that begin a turn in a text: "Model: T5" is a line of a list more often than somebody who speaks."""
