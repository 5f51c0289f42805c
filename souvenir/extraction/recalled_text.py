"""Recalled text whose fence was lost: what the service and other memories print, known by its form.

Each is looked for by more than its title, since people write about memory too. Linear in the text.
"""

from __future__ import annotations

import re

from souvenir.extraction.spans import HiddenSpan
from souvenir.extraction.turns import RemovedKind

_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_BLANK = r"[ \t]*\r?\n"
_SECTION = re.compile(
    rf"^(?:## Memory{_BLANK}(?:{_BLANK})?### [^\r\n]{{1,200}}\r?$"
    rf"|## Relevant Memories{_BLANK}(?:{_BLANK})?- {_DAY}: "
    rf"|## Relevant Past Conversations{_BLANK}(?:{_BLANK})?### {_DAY}[^\r\n]{{0,20}}{_BLANK}(?:{_BLANK})?"
    r"\*\*[^\r\n]{1,250}\*\*: )",
    re.MULTILINE,
)
_HEADING = re.compile(r"^#{1,2} ", re.MULTILINE)
_AFTER_LIST = re.compile(r"^(?!- |  |[ \t]*\r?$)", re.MULTILINE)
_PREAMBLE = re.compile(
    r"^[ \t>*_]{0,6}(?:(?:the following|here|below|these) (?:is|are|was|were)\b[^\n]{0,80}?"
    r"\b(?:(?:from|in) (?:your|the|my|its|long[- ]term|past|previous)\b[^\n]{0,30}?\bmemor(?:y|ies)"
    r"|memor(?:y|ies) (?:of|about|from)|recalled)\b"
    r"|(?:relevant|retrieved|recalled) memor(?:y|ies)\b|what you remember\b)[^\n:]{0,80}:[ \t*_]{0,6}\r?$",
    re.MULTILINE | re.IGNORECASE,
)
_ITEM = re.compile(r"[ \t]*(?:[-*•]|[0-9]{1,3}[.)])[ \t]|[ \t]+\S|[ \t]*\r?$")


def recalled_sections(text: str) -> list[HiddenSpan]:
    """Sections as a context has them, and lists behind a line that says that they come from memory.

    A list of memories ends with its last entry. Blocks and conversations are printed as they were stored, so nothing
    tells where they end: they hide everything up to the next heading, or all that follows in the turn.
    """
    spans: list[HiddenSpan] = []
    for found in _SECTION.finditer(text):
        if spans and found.start() < spans[-1].end:
            continue
        is_list = found[0].startswith("## Relevant Memories")
        end = (_AFTER_LIST if is_list else _HEADING).search(text, found.end())
        spans.append(HiddenSpan(RemovedKind.RECALLED, found.start(), end.start() if end else len(text)))
    for found in _PREAMBLE.finditer(text):
        if not spans or found.start() >= spans[-1].end or spans[-1].start > found.start():
            spans.append(HiddenSpan(RemovedKind.RECALLED, found.start(), _list_end(text, found.end())))
    return spans


def _list_end(text: str, at: int) -> int:
    """Behind the last line of the list that begins after a line."""
    end = at
    while at < len(text):
        line_start = at + 1
        line_end = text.find("\n", line_start)
        line_end = len(text) if line_end < 0 else line_end
        if not _ITEM.match(text[line_start:line_end]):
            break
        if text[line_start:line_end].strip():
            end = line_end
        at = line_end
    return end
