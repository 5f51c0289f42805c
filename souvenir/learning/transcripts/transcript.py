"""Parse a transcript into turns, and keep of each turn what hygiene leaves.

JSON is parsed in `json_form`. In plain text, some lines open a turn and may say when it was said:

    User: ...    **Assistant**: ...    [2024-03-15 10:00] Alice: ...    ### User    Session 3 (8 May 2023)

A line opens a turn if it names a role, or a person whose name opens turns repeatedly, and has the style of most such
lines. So "Note: ..." opens no turn, nor does a quoted `**User**: ...` if turns begin with `User: `. Lines in code
blocks and in blocks that a client injected open no turn either. Plain text cannot be more reliable: a message that
contains a line with a role is taken for that role, which only a transcript in JSON prevents.

A text without such lines is one turn of unknown role. Work is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from souvenir.learning.transcripts.hygiene import screened, shields
from souvenir.learning.transcripts.json_form import read_json
from souvenir.learning.transcripts.turns import (
    DATED_STAMP,
    SPOKEN_ROLES,
    STAMP,
    Piece,
    RemovedPart,
    Transcript,
    TranscriptTurn,
    TurnRole,
    parse_stamp,
)

_MAX_OPENER_CHARS = 200
"""How much of a line is parsed for speaker and time."""

_NAME = r"[^\W\d_][\w]{0,30}+(?:[ .'’\-]{1,2}\w{1,30}+){0,4}+\.?"
_OPENER = re.compile(
    r"[ \t]{0,3}(?P<heading>\#{1,6}[ \t]+)?(?P<bold>\*\*|__)?"
    rf"(?:(?P<open>[\[(])?(?P<stamp>{STAMP})(?(open)[\])])(?:[ \t]*[-–—|:])?[ \t]+)?"
    rf"(?P<bold_name>\*\*|__)?(?P<name>{_NAME})(?:[ \t]*[\[(](?P<note>[^\[\]()]{{1,80}})[\])])?"
    r"(?:\*\*|__)?(?P<colon>[ \t]{0,3}[:：])?(?:\*\*|__)?(?P<after>[ \t]*)(?P<full>$)?",
    re.IGNORECASE,
)
_SESSION = re.compile(
    r"[ \t]{0,3}(?:#{1,6}[ \t]+|[-=*]{2,}[ \t]*)?"
    r"(?:(?:date|time|session|conversation|chat|day|dialogue)\b[ \t]*(?:date|time|no\.?)?[ \t]*[0-9]{0,4}[ \t]*"
    r"[:,–—-]?[ \t]*){0,2}"
    rf"[\[(]?(?P<stamp>{DATED_STAMP})[\])]?[ \t]*[-=*:]{{0,20}}[ \t]*$",
    re.IGNORECASE,
)
_LABELS = frozenset(
    "note notes warning caution tip hint important info todo fixme example examples error errors exception question "
    "answer q a summary date time title subject from to cc bcc re fwd http https file files path usage output input "
    "result results response request step steps task tasks goal goals context description name names email phone "
    "address status version type price pros cons update edit ps p.s key value host port url link source reason cause "
    "fix problem solution issue day week month year location topic agenda total default required optional".split()
)
"""Words before a colon that are not names, however often they occur."""

_MIN_TIMES = 2
"""How often a name must open a turn to count as a speaker."""


@dataclass(frozen=True, slots=True)
class _Style:
    mark: str
    stamped: bool
    lower: bool = False


@dataclass(frozen=True, slots=True)
class _Opener:
    """A line that may open a turn: it begins at `start`, its text at `said`."""

    start: int
    said: int
    name: str
    role: TurnRole | None
    speaker: str | None
    stamp: str | None
    style: _Style


@dataclass(frozen=True, slots=True)
class _Session:
    """A line with the time of the following turns."""

    start: int
    end: int
    stamp: str


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


# --- plain text ------------------------------------------------------------------------------------------------------


def read_plain(text: str, shielded: Sequence[tuple[int, int]], document_at: datetime | None) -> list[TranscriptTurn]:
    """Return the turns with their full text; a single turn if no line opens one.

    :param shielded: Spans, ascending, in which no line opens a turn.
    """
    lines = list(_lines(text, shielded))
    candidates = [opener for start, line in lines if (opener := _opener(start, line)) is not None]
    first = next((start for start, line in lines if line.strip() and not _SESSION.match(line)), 0)
    openers = _chosen(candidates, first)
    sessions = _sessions(text, lines, {opener.start for opener in openers})
    return list(_turns(text, openers, sessions, document_at))


def _lines(text: str, shielded: Sequence[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Yield the start of each line, and as much of it as an opener may occupy."""
    starts = [start for start, _ in shielded]
    at = 0
    for line in text.splitlines(keepends=True):
        shield = bisect_right(starts, at) - 1
        if shield < 0 or at >= shielded[shield][1]:
            yield at, line.rstrip("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")[:_MAX_OPENER_CHARS]
        at += len(line)


def _opener(start: int, line: str) -> _Opener | None:
    found = _OPENER.match(line)
    if found is None:
        return None
    is_whole = found["full"] is not None and len(line) < _MAX_OPENER_CHARS
    name = " ".join(found["name"].split())
    role = SPOKEN_ROLES.get(name.casefold())
    if found["colon"] is None:
        if not (is_whole and role and (found["heading"] or found["bold"])):
            return None
    elif not (found["after"] or is_whole or found["colon"].endswith("：")):
        return None
    note, speaker, stamp = found["note"], None if role else name, found["stamp"]
    if note is not None:
        if (noted := SPOKEN_ROLES.get(note.strip().casefold())) is not None:
            role, speaker = noted, name
        elif stamp is None and re.fullmatch(STAMP, note.strip(), re.IGNORECASE):
            stamp = note.strip()
        elif role is not None:
            speaker = " ".join(note.split())
    mark = "heading" if found["heading"] else "bold" if found["bold"] or found["bold_name"] else "plain"
    style = _Style(mark, stamp is not None, lower=role is not None and name.islower())
    return _Opener(start, start + found.end(), name, role, speaker, stamp, style)


# --- which of them open a turn -----------------------------------------------------------------------------------


def _chosen(candidates: Sequence[_Opener], first: int) -> list[_Opener]:
    """Return the openers in the most frequent style; roles take precedence over names.

    :param first: Offset of the first line that is neither blank nor a session heading.
    """
    roles = [opener for opener in candidates if opener.role]
    if roles:
        style = Counter(opener.style for opener in roles).most_common(1)[0][0]
        roles = [opener for opener in roles if opener.style == style]
        has_user = any(opener.role == TurnRole.USER for opener in roles)
        names = [] if has_user and not style.stamped else _names(candidates, style)
        known = {opener.name for opener in names if opener.start == first} | _recurring(names)
        chosen = {opener.start: opener for opener in roles}
        chosen |= {opener.start: opener for opener in names if style.stamped or opener.name in known}
        return [chosen[start] for start in sorted(chosen)]
    styles = Counter(opener.style for opener in candidates if _can_be_a_name(opener))
    for style, count in styles.most_common():
        names = _names(candidates, style)
        if style.stamped and count >= _MIN_TIMES:
            return names
        speakers = _recurring(names)
        spoken = [opener for opener in names if opener.name in speakers]
        if len(speakers) > 1 and spoken[0].start == first:
            return spoken
    return []


def _names(candidates: Sequence[_Opener], style: _Style) -> list[_Opener]:
    return [
        opener
        for opener in candidates
        if _can_be_a_name(opener) and (opener.style.mark, opener.style.stamped) == (style.mark, style.stamped)
    ]


def _can_be_a_name(opener: _Opener) -> bool:
    return opener.role is None and opener.name.casefold() not in _LABELS and not opener.name[0].islower()


def _recurring(names: Sequence[_Opener]) -> set[str]:
    return {name for name, times in Counter(opener.name for opener in names).items() if times >= _MIN_TIMES}


# --- when, and what --------------------------------------------------------------------------------------------------


def _sessions(text: str, lines: Sequence[tuple[int, str]], opens: set[int]) -> list[_Session]:
    """Return session headings: before a line that opens a turn, or before all other text."""
    found: list[_Session] = []
    waiting: list[_Session] = []
    said = False
    for start, line in lines:
        if start in opens:
            found += waiting
            waiting, said = [], True
        elif heading := _SESSION.match(line):
            waiting.append(_Session(start, start + len(line), heading["stamp"]))
        elif line.strip():
            if not said:
                found += waiting
            waiting, said = [], True
    return found if said else []


def _turns(
    text: str, openers: Sequence[_Opener], sessions: Sequence[_Session], document_at: datetime | None
) -> Iterator[TranscriptTurn]:
    day = document_at.date() if document_at else None
    at = document_at
    marks: list[_Opener | _Session] = sorted([*openers, *sessions], key=lambda mark: mark.start)
    ends = [*(mark.start for mark in marks[1:]), len(text)]
    if text[: marks[0].start if marks else len(text)].strip():
        end = marks[0].start if marks else len(text)
        yield TranscriptTurn(TurnRole.UNKNOWN, None, at, (Piece(0, end, text[:end]),))
    for mark, end in zip(marks, ends, strict=False):
        if isinstance(mark, _Session):
            at = parse_stamp(mark.stamp, None) or at
            day = at.date() if at else None
            if text[mark.end : end].strip():
                yield TranscriptTurn(TurnRole.UNKNOWN, None, at, (Piece(mark.end, end, text[mark.end : end]),))
            continue
        when = (parse_stamp(mark.stamp, day) if mark.stamp else None) or at
        day = when.date() if when else day
        piece = Piece(mark.said, end, text[mark.said : end])
        yield TranscriptTurn(mark.role or TurnRole.USER, mark.speaker, when, (piece,))
