"""Reads a transcript in any form, and hides what must not be learned: recalled text, client tags, text for programs.

Hidden parts are spans, so that the rest keeps its offsets. Invariants: the spans of `screened` ascend and do not
overlap; recalled text in our own fence is found anywhere, also in a code block, while other tags count only outside of
code, so a sentence about `<system-reminder>` stays. An unclosed tag hides at most the text that is given, which is one
turn. Pure functions, linear in the text.
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
    """The turns of a transcript. Never fails: what has no form that is known is one turn that nobody says.

    :param document_at: When it was said, as far as the transcript does not say it; aware.
    """
    read = read_json(text)
    turns, removed = read if read is not None else (read_plain(text, shields(text), document_at), [])
    kept = []
    for turn in turns:
        pieces, out = _screened(turn)
        kept.append(replace(turn, at=turn.at or document_at, pieces=pieces))
        removed += out
    return Transcript(text, tuple(kept), tuple(sorted(removed, key=lambda part: part.start)))


def kept_of(turn: TranscriptTurn) -> TranscriptTurn:
    """A turn as it was said, which is one piece: with what hygiene leaves of it."""
    pieces, _ = _screened(turn)
    return replace(turn, pieces=pieces)


def _screened(turn: TranscriptTurn) -> tuple[tuple[Piece, ...], list[RemovedPart]]:
    """Of a turn as it was read, which is one piece: what is kept, without blanks around it, and what is not."""
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
"""Tags of clients, by name in lower case: those of agents, editors and memory packages that print them."""

_CLOSED_ONLY = frozenset({"memory", "memories"})
"""Too common as words of markup to hide a turn when nothing closes them."""

_OF_MEMORY = re.compile(r"\b(?:memory|memories|remembered|recalled)\b", re.IGNORECASE)
_CONTEXT = "context"
_CONTEXT_HEAD_CHARS = 300
"""Of what a `<context>` holds, in which it says that it is a memory's."""


_MAX_INDENT = 8
"""Blanks before a tag that stands on a line of its own."""


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    kind: RemovedKind
    start: int
    end: int
    closing: bool
    opens_line: bool


def screened(text: str, role: TurnRole) -> list[HiddenSpan]:
    """What of one turn is never learned from."""
    fences = _fenced(text)
    blocks, code = _tagged(text, fences)
    hidden = merged([*fences, *blocks])
    seen = merged([*hidden, *(HiddenSpan(RemovedKind.NOISE, *span) for span in code)])
    recalled = [span for span in recalled_sections(text) if not holds(seen, span.start)]
    return merged([*hidden, *recalled, *noise(text, is_tool=role == TurnRole.TOOL)])


def shields(text: str) -> list[tuple[int, int]]:
    """Where in a whole transcript no line opens a turn: code blocks, and blocks whose tags stand on lines of their own.

    A tag that opens twice before it closes was not closed: the blocks of one client do not hold each other.
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
    """The fence's tags, without those that a text writes about in backticks."""
    return [
        tag
        for tag in fence_tags(text)
        if not (text[tag.start - 1 : tag.start] == "`" and text[tag.end : tag.end + 1] == "`")
    ]


def _fenced(text: str) -> list[HiddenSpan]:
    """From a tag that opens to the one that closes it, else to the end; up to one that closes what nothing opened.

    What the fence holds has no tag of it, so of several that open the first is the block's, and of several that close
    before another one opens the last.
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
    """The blocks of clients' tags and the code blocks: what opens first counts."""
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
    """Where the block ends that a tag opens: at the tag that closes it, at the last one if there are too few.

    :param last: The last of these tags that closes, so that none is looked for where there is none.
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
