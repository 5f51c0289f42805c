"""Hygiene: find the spans of a turn that are never learned from: recalled text, client tags and text for programs.

Hidden parts are spans, so that the rest keeps its offsets. Invariants: the spans of `screened` ascend and do not
overlap; recalled text in our own fence is found anywhere, even in a code block, while other tags count only outside of
code, so a sentence about `<system-reminder>` stays. An unclosed tag hides at most the given text, which is one turn.
Text for programs is tool calls, encoded data, traces and logs. Pure functions, linear in the text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from souvenir.core.text import FenceTag, fence_tags
from souvenir.learning.transcripts.turns import HiddenSpan, RemovedKind, TurnRole, holds, merged

_TAG = re.compile(r"<(?P<slash>/?)[ \t]{0,3}(?P<name>[A-Za-z][\w:.-]{0,60}+)(?P<more>[^<>]{0,300}+)>")
_KINDS = (
    (
        RemovedKind.INJECTED,
        re.compile(
            r"system[-_]reminder|system[-_]warning|.*[-_]hook|hook[-_].*|local-command-.*|command-(?:name|message|args|contents)"
            r"|bash-(?:input|stdout|stderr)|ide_.*|environment_details|task-notification|user-memory-input|persisted-output"
        ),
    ),
    (
        RemovedKind.RECALLED,
        re.compile(
            r"memory|memories|recalled.*|memor(?:y|ies)[-_].*|.*[-_]memor(?:y|ies)|.*mem[-_]context"
            r"|(?:past|relevant|previous)[-_]conversations?"
        ),
    ),
    (
        RemovedKind.TOOL,
        re.compile(
            r"(?:[a-z]{1,20}:)?(?:function_(?:calls?|results?)|tool_(?:calls?|uses?|results?|responses?|outputs?|use_error))"
        ),
    ),
    (RemovedKind.REASONING, re.compile(r"(?:[a-z]{1,20}:)?think(?:ing)?")),
)
"""Tags of agents, editors and memory packages, by lower-case name."""

_CLOSED_ONLY = frozenset({"memory", "memories"})
"""Too common in markup to hide a turn if nothing closes them."""

_OF_MEMORY = re.compile(r"\b(?:memory|memories|remembered|recalled)\b", re.IGNORECASE)
_CONTEXT = "context"
_CONTEXT_HEAD_CHARS = 300
"""How much of a `<context>` is searched for words about memory."""


_MAX_INDENT = 8
"""Maximum indentation of a tag on a line of its own."""


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    kind: RemovedKind
    start: int
    end: int
    closing: bool
    opens_line: bool


def screened(text: str, role: TurnRole) -> list[HiddenSpan]:
    """Return the spans of one turn that are never learned from."""
    if _PLAIN.fullmatch(text):
        return []
    fences = _fenced(text)
    blocks, code = _tagged(text, fences)
    hidden = merged([*fences, *blocks])
    seen = merged([*hidden, *(HiddenSpan(RemovedKind.NOISE, *span) for span in code)])
    recalled = [span for span in recalled_sections(text) if not holds(seen, span.start)]
    return merged([*hidden, *recalled, *noise(text, is_tool=role == TurnRole.TOOL)])


def shields(text: str) -> list[tuple[int, int]]:
    """Return the spans in which no line opens a turn: code blocks, and blocks with tags on their own lines.

    A tag that opens twice before it closes is unclosed: the blocks of one client do not nest.
    """
    fences = [
        HiddenSpan(RemovedKind.RECALLED, tag.start, closing.end)
        for tag, closing in pairwise(_own_tags(text))
        if not tag.closing and closing.closing
    ]
    found: list[tuple[int, int]] = []
    blocks, code = _tagged(text, merged(fences), within_turn=False)
    found += [(span.start, span.end) for span in (*fences, *blocks)] + list(code)
    return [(span.start, span.end) for span in merged(HiddenSpan(RemovedKind.NOISE, *span) for span in found)]


# --- our own fence -------------------------------------------------------------------------------------------------


def _own_tags(text: str) -> list[FenceTag]:
    """Return the tags of our fence, except those quoted in backticks."""
    return [
        tag
        for tag in fence_tags(text)
        if not (text[tag.start - 1 : tag.start] == "`" and text[tag.end : tag.end + 1] == "`")
    ]


def _fenced(text: str) -> list[HiddenSpan]:
    """Return spans from an opening tag to its closing tag, else to the end; or up to an unmatched closing tag.

    Fenced content contains none of these tags. Of several opening tags the first one is therefore the block's, and of
    several closing tags before another opening one, the last.
    """
    tags = _own_tags(text)
    spans: list[HiddenSpan] = []
    start: int | None = 0 if tags and tags[0].closing else None
    for tag, following in zip(tags, [*tags[1:], None][: len(tags)], strict=True):
        start = tag.start if start is None else start
        if tag.closing and (following is None or not following.closing):
            spans.append(HiddenSpan(RemovedKind.RECALLED, start, tag.end))
            start = None
    if start is not None:
        spans.append(HiddenSpan(RemovedKind.RECALLED, start, len(text)))
    return spans


# --- tags of clients -----------------------------------------------------------------------------------------------


def _tagged(
    text: str, fences: Sequence[HiddenSpan], *, within_turn: bool = True
) -> tuple[list[HiddenSpan], list[tuple[int, int]]]:
    """Return the blocks of client tags and the code blocks; the outer one wins."""
    tags = [tag for tag in _client_tags(text) if not holds(fences, tag.start)]
    by_name: dict[str, list[_Tag]] = defaultdict(list)
    for tag in tags:
        by_name[tag.name].append(tag)
    starts = {name: [tag.start for tag in named] for name, named in by_name.items()}
    last = {tag.name: number for named in by_name.values() for number, tag in enumerate(named) if tag.closing}
    opening: list[_Tag | tuple[int, int]] = [tag for tag in tags if not tag.closing]
    opening += [block for block in code_blocks(text) if not holds(fences, block[0])]
    spans: list[HiddenSpan] = []
    code: list[tuple[int, int]] = []
    done = 0
    for one in sorted(opening, key=_start):
        if _start(one) < done:
            continue
        if isinstance(one, tuple):
            code.append(one)
            done = one[1]
            continue
        named = by_name[one.name]
        at = bisect_left(starts[one.name], one.start)
        end = _block_end(text, named, at, last.get(one.name, -1)) if within_turn else _own_lines_end(named, at)
        if end is not None:
            spans.append(HiddenSpan(one.kind, one.start, end))
            done = end
    return spans, code


def _start(one: _Tag | tuple[int, int]) -> int:
    return one[0] if isinstance(one, tuple) else one.start


def _client_tags(text: str) -> Iterator[_Tag]:
    spans = code_spans(text)
    starts = [start for start, _ in spans]
    for found in _TAG.finditer(text):
        name = found["name"].lower()
        kind = next((kind for kind, names in _KINDS if names.fullmatch(name)), None)
        if kind is None and name == _CONTEXT and (found["slash"] or _is_of_memory(text, found)):
            kind = RemovedKind.RECALLED
        span = bisect_right(starts, found.start()) - 1
        in_code = span >= 0 and found.start() < spans[span][1]
        if kind is not None and not in_code and not found["more"].endswith("/"):
            yield _Tag(name, kind, found.start(), found.end(), bool(found["slash"]), _opens_line(text, found.start()))


def _opens_line(text: str, at: int) -> bool:
    before = text[max(0, at - _MAX_INDENT) : at]
    return not before.rpartition("\n")[2].strip() and ("\n" in before or at <= _MAX_INDENT)


def _is_of_memory(text: str, tag: re.Match[str]) -> bool:
    head = text[tag.end() : tag.end() + _CONTEXT_HEAD_CHARS].split("</", 1)[0]
    return _OF_MEMORY.search(tag["more"]) is not None or _OF_MEMORY.search(head) is not None


def _block_end(text: str, named: Sequence[_Tag], at: int, last: int) -> int | None:
    """Return the end of a block: at its closing tag, or at the last closing tag if there are too few.

    :param last: Index of the last closing tag, which saves a search if there is none.
    """
    if last < at:
        never = named[at].name in (*_CLOSED_ONLY, _CONTEXT) or not named[at].opens_line
        return None if never else len(text)
    depth = 0
    for number in range(at, len(named)):
        depth += -1 if named[number].closing else 1
        if depth == 0:
            return named[number].end
    return named[last].end


def _own_lines_end(named: Sequence[_Tag], at: int) -> int | None:
    following = named[at + 1] if at + 1 < len(named) else None
    if following is None or not following.closing or not named[at].opens_line or not following.opens_line:
        return None
    return following.end


# --- text for programs -----------------------------------------------------------------------------------------------


MIN_BLOB_CHARS = 200
"""Longer than any word, name, path or hash that people write about."""

MIN_LINES = 6
"""Minimum length of a trace, a diff or a log: shorter ones are quoted on purpose, longer ones are dumps."""

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

_PLAIN = re.compile(rf"[A-Za-zÀ-ÿ0-9 ,.;!?'’\"“”()/–—€$-]{{0,{MIN_BLOB_CHARS - 1}}}")
"""A line that is too short for encoded data, without the signs of tags, headings, announced lists, colours and JSON."""


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
