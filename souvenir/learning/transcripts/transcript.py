"""Parse a transcript in any form, and hide recalled text, client tags and text for programs.

Hidden parts are never learned from. They are spans, so that the rest keeps its offsets. Invariants: the spans of
`screened` ascend and do not overlap; recalled text in our own fence is found anywhere, even in a code block, while
other tags count only outside of code, so a sentence about `<system-reminder>` stays. An unclosed tag hides at most the
given text, which is one turn. Pure functions, linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from souvenir.core.text import FenceTag, fence_tags
from souvenir.learning.transcripts.json_form import read_json
from souvenir.learning.transcripts.noise import code_blocks, code_spans, noise, recalled_sections
from souvenir.learning.transcripts.plain_form import read_plain
from souvenir.learning.transcripts.turns import (
    HiddenSpan,
    Piece,
    RemovedKind,
    RemovedPart,
    Transcript,
    TranscriptTurn,
    TurnRole,
    holds,
    merged,
)


def read_transcript(text: str, *, document_at: datetime | None) -> Transcript:
    """Parse a transcript. Never fails: text in no known form is one turn of unknown role.

    :param document_at: Default time of the turns that have none; timezone-aware.
    """
    read = read_json(text)
    turns, removed = read if read is not None else (read_plain(text, shields(text), document_at), [])
    kept = []
    for turn in turns:
        pieces, out = _screened(turn)
        kept.append(replace(turn, at=turn.at or document_at, pieces=pieces))
        removed += out
    return Transcript(text, tuple(kept), tuple(sorted(removed, key=lambda part: part.start)))


def screened_turn(turn: TranscriptTurn) -> TranscriptTurn:
    """Return a turn, which is one piece, with the pieces that hygiene keeps."""
    pieces, _ = _screened(turn)
    return replace(turn, pieces=pieces)


def _screened(turn: TranscriptTurn) -> tuple[tuple[Piece, ...], list[RemovedPart]]:
    """Return the kept pieces of a one-piece turn, without surrounding whitespace, and the removed parts."""
    (whole,) = turn.pieces
    if not whole.text.strip():
        return (), []
    kept: list[Piece] = []
    removed = []
    done = 0
    for span in screened(whole.text, turn.role):
        kept.append(whole.part(done, span.start))
        out = whole.part(span.start, span.end)
        removed.append(RemovedPart(span.kind, out.start, out.end, out.text))
        done = span.end
    kept.append(whole.part(done, len(whole.text)))
    return _stripped([piece for piece in kept if piece.text]), removed


def _stripped(pieces: list[Piece]) -> tuple[Piece, ...]:
    said = [number for number, piece in enumerate(pieces) if piece.text.strip()]
    if not said:
        return ()
    pieces = pieces[said[0] : said[-1] + 1]
    first = pieces[0].text
    pieces[0] = pieces[0].part(len(first) - len(first.lstrip()), len(first))
    pieces[-1] = pieces[-1].part(0, len(pieces[-1].text.rstrip()))
    return tuple(pieces)


# --- hygiene ---------------------------------------------------------------------------------------------------------


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
