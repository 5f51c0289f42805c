"""Find text in a transcript that is not speech: tool calls, encoded data, traces, logs, recalled text, code blocks.

Pure functions, linear in the text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator

from souvenir.learning.transcripts.turns import HiddenSpan, RemovedKind

MIN_BLOB_CHARS = 200
"""Longer than any word, name, path or hash that people write about."""

MIN_LINES = 6
"""Of a trace, a diff or a log: shorter ones are quoted on purpose, longer ones are dumps."""

_BLOB = re.compile(rf"(?:data:[\w.+-]{{1,40}}/[\w.+-]{{1,40}};base64,)?[A-Za-z0-9+/_-]{{{MIN_BLOB_CHARS},}}+={{0,2}}")
_WRAPPED = re.compile(r"(?:^[A-Za-z0-9+/]{60,80}\r?\n){3,}+[A-Za-z0-9+/]{0,80}={0,2}", re.MULTILINE)
_COLOUR = re.compile(r"\x1b(?:\[[0-?]{0,40}+[ -/]{0,10}+[@-~]|\][^\x07\x1b\n]{0,300}+(?:\x07|\x1b\\)|[@-Z\\-_])")
_DUMP_LINE = re.compile(
    r"[ \t]*(?:Traceback \(most recent call last\)|File \"[^\"\n]{1,300}\", line [0-9]+"
    r"|at [^\s(]{1,300}[ \t]?\(|at (?:async )?(?:file:|/|node:)"
    r"|\.\.\. [0-9]+ more|goroutine [0-9]+ \["
    r"|\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}[^\s]{0,20}[ \t]"
    r"[^\n]{0,80}?\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
    r"|\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b[\]:]?[ \t]"
    r"|\[[0-9]{2}:[0-9]{2}:[0-9]{2}[^\]\n]{0,20}\][ \t]\[?[A-Z]{4,8}\b)"
)
_TRACE_CODE = re.compile(r"[ \t]{2,}\S|[ \t]*[~^]+[ \t]*$")
_DIFF_HEAD = re.compile(r"diff --git |@@ -[0-9]|Index: |--- [^\s-]|\+\+\+ ")
_DIFF_LINE = re.compile(
    r"[-+ @\\]|diff --git |index [0-9a-f]|(?:new|deleted) file mode|similarity index|rename (?:from|to) |$"
)
_JSON_START = re.compile(r"^[ \t]*+(?=[{\[])", re.MULTILINE)
_CALL_KEYS = frozenset(
    {
        "tool_use_id",
        "tool_call_id",
        "tool_calls",
        "tool_name",
        "tool_input",
        "toolUseResult",
        "function_call",
        "jsonrpc",
    }
)
_MAX_BROKEN_VALUES = 200
"""Per text.

Locating the error in an invalid value takes time linear in the text, so the search for JSON stops there.
"""

_DECODER = json.JSONDecoder(strict=False)


def noise(text: str, *, is_tool: bool) -> Iterator[HiddenSpan]:
    """Yield spans that may overlap, in no order.

    :param is_tool: True for the turn of a tool, in which each JSON value on its own lines is a result for programs.
    """
    for pattern in (_BLOB, _WRAPPED, _COLOUR):
        yield from (HiddenSpan(RemovedKind.NOISE, *found.span()) for found in pattern.finditer(text))
    yield from _dumps(text)
    yield from _json_values(text, is_tool=is_tool)


def _dumps(text: str) -> Iterator[HiddenSpan]:
    """Yield runs of at least `MIN_LINES` lines of a trace, a log or a diff."""
    start, count, is_diff, is_trace, at = 0, 0, False, False, 0
    for line in [*text.splitlines(keepends=True), ""]:
        bare = line.rstrip("\r\n")
        if _DIFF_HEAD.match(bare):
            goes_on, is_diff = True, True
        elif is_diff:
            goes_on = bool(line) and _DIFF_LINE.match(bare) is not None
        elif _DUMP_LINE.match(bare):
            goes_on, is_trace = True, True
        else:
            goes_on = is_trace and _TRACE_CODE.match(bare) is not None
        if goes_on:
            start, count = (start, count + 1) if count else (at, 1)
        else:
            if count >= MIN_LINES:
                yield HiddenSpan(RemovedKind.NOISE, start, at)
            count, is_diff, is_trace = 0, False, False
        at += len(line)


def _json_values(text: str, *, is_tool: bool) -> Iterator[HiddenSpan]:
    """Yield JSON objects and lists that begin and end a line. The inside of an invalid value is not parsed again."""
    done, broken = 0, 0
    for found in _JSON_START.finditer(text):
        if found.end() < done:
            continue
        if broken == _MAX_BROKEN_VALUES:
            return
        try:
            value, end = _DECODER.raw_decode(text, found.end())
        except json.JSONDecodeError as error:
            done, broken = error.pos, broken + 1
            continue
        except RecursionError:
            return
        done = end
        line_end = text.find("\n", end)
        ends_line = not text[end : len(text) if line_end < 0 else line_end].strip()
        if ends_line and value and (is_tool or _is_call(value)):
            yield HiddenSpan(RemovedKind.TOOL, found.end(), end)


def _is_call(value: object) -> bool:
    """Return True if the value is a call or a result of a tool."""
    if isinstance(value, list):
        return bool(value) and all(_is_call(one) for one in value)
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    of_kind = isinstance(kind, str) and kind.replace("-", "_") in (
        "tool_use",
        "tool_result",
        "tool_call",
        "function_call",
        "function",
    )
    is_named = isinstance(value.get("name"), str) and any(key in value for key in ("arguments", "input", "parameters"))
    return of_kind or is_named or not _CALL_KEYS.isdisjoint(value)


# --- recalled text ---------------------------------------------------------------------------------------------------


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
    """Return sections as `context` prints them, and lists after a line that announces memories.

    A list of memories ends with its last entry. Blocks and conversations are printed as stored, so their end cannot be
    recognised: they hide everything up to the next heading, or the rest of the turn.
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
    """Return the end of the last line of a list."""
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


# --- code ------------------------------------------------------------------------------------------------------------


_FENCE = re.compile(
    r"^[ \t]{0,3}(?:(?:[-*+]|[0-9]{1,3}[.)])[ \t]+)?[ \t]{0,8}(?P<marks>`{3,}+|~{3,}+)(?P<info>[^`\n]*+)$", re.MULTILINE
)
_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]++\1(?!`)")


def code_blocks(text: str) -> list[tuple[int, int]]:
    """Return closed blocks, from their first line to their last; an unclosed fence opens no block."""
    fences = list(_FENCE.finditer(text))
    closers = [_following(fences, "`"), _following(fences, "~")]
    blocks: list[tuple[int, int]] = []
    at = 0
    while at < len(fences):
        closer = closers["`~".index(fences[at]["marks"][0])][at]
        if closer is not None:
            blocks.append((fences[at].start(), fences[closer].end()))
            at = closer
        at += 1
    return blocks


def code_spans(text: str) -> list[tuple[int, int]]:
    """Return text in backticks, each within one line."""
    return [found.span() for found in _SPAN.finditer(text)]


def _following(fences: list[re.Match[str]], mark: str) -> list[int | None]:
    """Return for each fence the next one of that mark that can close it: bare, and at least as long."""
    found: list[int | None] = [None] * len(fences)
    lengths: list[int] = []
    places: list[int] = []
    for at in range(len(fences) - 1, -1, -1):
        fence = fences[at]
        if fence["marks"][0] != mark:
            continue
        length = len(fence["marks"])
        behind = bisect_left(lengths, -length + 1) - 1
        found[at] = places[behind] if behind >= 0 else None
        if not fence["info"].strip():
            while lengths and -lengths[-1] <= length:
                lengths.pop()
                places.pop()
            lengths.append(-length)
            places.append(at)
    return found
