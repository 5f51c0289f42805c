"""Messages of a framework as messages of a session. Nothing here calls the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from souvenir_client.adapters.texts import MAX_TEXT_CHARACTERS, is_blank


def message(role: str, content: str, kind: str, *, field: str, whole: Mapping[str, Any]) -> dict[str, Any]:
    """A message to store.

    :param content: What is searched and shown in contexts; the first 50,000 characters.
    :param kind: Stands for content without visible characters.
    :param whole: The framework's message, which is kept in this field of the metadata.
    """
    text = content[:MAX_TEXT_CHARACTERS]
    return {"role": role, "content": f"({kind})" if is_blank(text) else text, "metadata": {field: whole}}
