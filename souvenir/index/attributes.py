"""The filter and score attributes of every passage, as arrays by row, so that neither needs the database.

Rows are dense; removing one moves the last row to its place, as in the other arrays of a namespace. The neighbours of
a passage in its session are links between rows (`souvenir.index.passage_words`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from souvenir.core.array_file import Rows, in_memory
from souvenir.core.labels import is_visible, lies_in
from souvenir.core.passages import OwnerChanged, Passage, PassageColumns, PassageRow
from souvenir.core.timestamps import to_us
from souvenir.core.types import Filters, MessageRole, Profile, SourceFilter, SourceMatch, TurnFilter
from souvenir.index.passage_words import Place, SessionLinks
from souvenir.index.row_numbers import RowNumbers
from souvenir.index.speakers import Speakers
from souvenir.index.turn_flags import turn_flags

_MIN_CAPACITY = 64
_PATHS_KEPT = 64
"""Maximum number of path lists whose visible source names are cached."""
_NO_NAMES = np.zeros(0, dtype=np.bool_)
_COLUMNS = (
    *("_ids", "_owners", "_profiles", "_sources", "_occurred", "_archived", "_dated"),
    *("_sessions", "_positions", "_roles", "_users", "_speakers", "_flags", "_facts"),
)
"""In the order of `PassageRow`."""
_ROLE_CODES: Mapping[MessageRole | None, int] = {None: 0, **{role: code for code, role in enumerate(MessageRole, 1)}}
_USER = _ROLE_CODES[MessageRole.USER]


def row_of(passage: Passage) -> PassageRow:
    """Return the attributes of a passage that the arrays hold."""
    row = PassageRow(
        id=passage.id,
        owner_id=passage.owner_id,
        profile=passage.profile,
        source=passage.source,
        occurred_us=to_us(passage.occurred_at),
        archived=passage.archived,
        dated=passage.dated,
        fact_id=passage.fact_id or 0,
    )
    turn = passage.turn
    if turn is None:
        return row
    return row._replace(
        session_id=turn.session_id,
        position=turn.position,
        role=turn.role,
        user_id=turn.user_id or 0,
        speaker=turn.speaker or "",
        flags=turn_flags(passage.text).value,
    )


def source_matches(source: str, wanted: SourceFilter) -> bool:
    match wanted.match:
        case SourceMatch.PREFIX:
            return source.startswith(wanted.pattern)
        case SourceMatch.PATH:
            return lies_in(source, wanted.pattern)
        case SourceMatch.SUBSTRING:
            return wanted.pattern in source


class Contents(NamedTuple):
    """Two flags: some passage is an assistant's message; some passage is of a fact."""

    answers: bool
    facts: bool


class PassageAttributes:
    """Arrays of shape (n,), one row per passage: see `PassageRow`; sources, roles and speakers are stored as codes.

    :param analyse: Returns the terms of a speaker's name.
    """

    def __init__(self, analyse: Callable[[str], Sequence[str]]) -> None:
        self.speakers = Speakers(analyse)
        self._size = 0
        self._ids = np.zeros(_MIN_CAPACITY, dtype=np.int64)
        self._owners = np.zeros(_MIN_CAPACITY, dtype=np.int64)
        self._profiles = np.zeros(_MIN_CAPACITY, dtype=np.uint8)
        self._sources = np.zeros(_MIN_CAPACITY, dtype=np.int32)
        self._occurred = np.zeros(_MIN_CAPACITY, dtype=np.int64)
        self._archived = np.zeros(_MIN_CAPACITY, dtype=np.bool_)
        self._dated = np.zeros(_MIN_CAPACITY, dtype=np.bool_)
        self._sessions = np.zeros(_MIN_CAPACITY, dtype=np.int64)
        self._positions = np.zeros(_MIN_CAPACITY, dtype=np.int32)
        self._roles = np.zeros(_MIN_CAPACITY, dtype=np.int8)
        self._users = np.zeros(_MIN_CAPACITY, dtype=np.int64)
        self._speakers = np.zeros(_MIN_CAPACITY, dtype=np.int32)
        self._flags = np.zeros(_MIN_CAPACITY, dtype=np.uint8)
        self._facts = np.zeros(_MIN_CAPACITY, dtype=np.int64)
        self._row_of = RowNumbers()
        self._source_names: list[str] = []
        self._source_codes: dict[str, int] = {}
        self._archived_count = 0
        self._profile_counts: Counter[int] = Counter()
        self.held_profiles: tuple[Profile, ...] = ()
        self._assistant_count = 0
        self._fact_count = 0
        self._links = SessionLinks(self._row_of.get)
        self._seen_by: dict[tuple[str, ...], NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return self._size

    @property
    def ids(self) -> NDArray[np.int64]:
        return self._ids[: self._size]

    @property
    def owners(self) -> NDArray[np.int64]:
        return self._owners[: self._size]

    @property
    def occurred(self) -> NDArray[np.int64]:
        return self._occurred[: self._size]

    @property
    def profiles(self) -> NDArray[np.uint8]:
        return self._profiles[: self._size]

    @property
    def flags(self) -> NDArray[np.uint8]:
        return self._flags[: self._size]

    @property
    def spoken_by(self) -> NDArray[np.int32]:
        """Codes of `speakers`; 0 means no speaker."""
        return self._speakers[: self._size]

    @property
    def fact_ids(self) -> NDArray[np.int64]:
        """Fact ids of the rows; 0 for the owner's own text."""
        return self._facts[: self._size]

    def texts(self) -> NDArray[np.bool_] | None:
        """Return a mask of the rows of owners' own texts, shape (n,); None if all are."""
        return self.fact_ids == 0 if self._fact_count else None

    def contents(self, rows: NDArray[np.bool_] | None) -> Contents:
        """Return what some rows (n,), or all, contain."""
        answers, facts = self._assistant_count > 0, self._fact_count > 0
        if rows is not None:
            answers = answers and bool((self._roles[: self._size][rows] == _ROLE_CODES[MessageRole.ASSISTANT]).any())
            facts = facts and bool((self.fact_ids[rows] != 0).any())
        return Contents(answers, facts)

    def holds(self, profile: Profile) -> bool:
        return profile in self.held_profiles

    @property
    def only_profile(self) -> Profile | None:
        """The profile of all rows, if there is only one, which makes computations over all rows faster."""
        return self.held_profiles[0] if len(self.held_profiles) == 1 else None

    def turns_of_speakers(self, rows: NDArray[np.bool_] | None) -> list[int]:
        """Return the number of turns of talks of each speaker, by code, among some rows (n,) or all."""
        of_talk = self.profiles == Profile.TALK
        counts: list[int] = np.bincount(self.spoken_by[of_talk if rows is None else of_talk & rows]).tolist()
        return counts

    @property
    def linked(self) -> bool:
        """Whether any row has a session."""
        return self._links.any

    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows before and after each one in its session, (n + 1,); -1, the last entry, means none."""
        return self._links.arrays(self._size)

    def columns(self, lengths: NDArray[np.uint32], named: int | None, *, has_answers: bool) -> PassageColumns:
        """Return the inputs of the field scores.

        :param lengths: Terms of every row, (n,). :param named: Code of the only speaker that the query names.
        :param has_answers: Whether the searched namespace has an assistant's messages.
        """
        end = self._size
        return PassageColumns(
            profiles=self.profiles,
            only_profile=self.only_profile,
            occurred_us=self.occurred,
            flags=self.flags,
            lengths=lengths,
            by_user=self._roles[:end] == _USER if has_answers else None,
            by_named=None if named is None else self._speakers[:end] == named,
        )

    @property
    def archived(self) -> NDArray[np.bool_]:
        return self._archived[: self._size]

    @property
    def nbytes(self) -> int:
        """Approximate memory of the arrays, the links and the row numbers."""
        return sum(column.nbytes for column in self._columns()) + self._links.nbytes + self._row_of.nbytes

    def row_of(self, passage_id: int) -> int | None:
        return self._row_of.get(passage_id)

    def has_ids(self, count: int, total: int) -> bool:
        """Return whether the ids of the rows are of this number and sum."""
        return len(self) == count and int(self.ids.sum()) == total

    def source_of(self, row: int) -> str:
        return self._source_names[int(self._sources[row])]

    def agrees(self, row: int, passage: Passage) -> bool:
        """Return whether the row equals the attributes of the passage."""
        stated = row_of(passage)
        held = stated._replace(source=self.source_of(row), speaker=self.speakers.name_of(int(self._speakers[row])))
        return held == stated and all(
            column[row] == value for column, value in zip(self._columns(), self._coded(stated), strict=True)
        )

    def problems(self) -> Iterator[str]:
        """Yield differences between the aggregates and the rows."""
        linked = SessionLinks(self._row_of.get)
        linked.reserve(self._size)
        for row in range(self._size):
            found = self._session_of(row)
            if found is not None:
                linked.insert(row, *found)
        if not all(map(np.array_equal, self.neighbours(), linked.arrays(self._size))):
            yield "passages have other neighbours than their sessions say"
        assistant = _ROLE_CODES[MessageRole.ASSISTANT]
        held = self._archived_count, self._assistant_count, self._fact_count, +self._profile_counts
        stated = (
            int(np.count_nonzero(self.archived)),
            int(np.count_nonzero(self._roles[: self._size] == assistant)),
            int(np.count_nonzero(self.fact_ids)),
            Counter(self.profiles.tolist()),
        )
        if held != stated:
            yield f"(archived, by an assistant, of facts, by profile) are {stated} passages, but {held} are counted"

    def append(self, new: PassageRow) -> None:
        if self._size == len(self._ids):
            self._grow()
        row = self._size
        self._size += 1
        for column, value in zip(self._columns(), self._coded(new), strict=True):
            column[row] = value
        self._row_of[new.id] = row
        self._counted(row, 1)
        self._link(row)

    def _derive(self) -> None:
        """Compute everything that follows from the columns."""
        size = self._size
        self._row_of.reset(self.ids)
        self._archived_count = int(np.count_nonzero(self.archived))
        self._profile_counts = Counter(dict(enumerate(np.bincount(self.profiles).tolist())))
        self.held_profiles = tuple(one for one in Profile if self._profile_counts[one])
        self._fact_count = int(np.count_nonzero(self.fact_ids))
        self._assistant_count = int(np.count_nonzero(self._roles[:size] == _ROLE_CODES[MessageRole.ASSISTANT]))
        for code, count in enumerate(self.turns_of_speakers(None)):
            self.speakers.count(code, count - self.speakers.count_of(code))
        self._links = SessionLinks(self._row_of.get)
        self._links.reserve(size)
        self._link_all()

    def remove(self, row: int) -> None:
        """Remove a row; the last row moves to its place."""
        last = self._size - 1
        self._counted(row, -1)
        self._unlink(row)
        del self._row_of[int(self._ids[row])]
        if row != last:
            self._links.move(last, row)
            for column in self._columns():
                column[row] = column[last]
            self._row_of[int(self._ids[row])] = row
        self._archived[last] = False
        self._size = last

    def change(self, row: int, source: str, occurred_us: int, archived: bool, dated: bool) -> None:
        self._unlink(row)
        self._archived_count += int(archived) - int(self._archived[row])
        self._sources[row] = self._code(source)
        self._occurred[row] = occurred_us
        self._archived[row] = archived
        self._dated[row] = dated
        self._link(row)

    def _counted(self, row: int, change: int) -> None:
        """Update the aggregates for an added (1) or removed (-1) row."""
        profile = int(self._profiles[row])
        self._archived_count += change * int(self._archived[row])
        self._profile_counts[profile] += change
        if self._profile_counts[profile] in (0, change):  # the last one of its profile, or the first one
            self.held_profiles = tuple(one for one in Profile if self._profile_counts[one])
        self._fact_count += change * int(self._facts[row] != 0)
        self._assistant_count += change * int(self._roles[row] == _ROLE_CODES[MessageRole.ASSISTANT])
        if profile == Profile.TALK:
            self.speakers.count(int(self._speakers[row]), change)

    def _session_of(self, row: int) -> tuple[Hashable, Place] | None:
        """Return the group of a row and its place in it: a message's session, or a source's memories of one given time.

        Facts are not neighbours of the text that they belong to.
        """
        session_id, passage_id = int(self._sessions[row]), int(self._ids[row])
        if session_id:
            return session_id, (int(self._positions[row]), passage_id)
        if self._dated[row] and not self._facts[row]:
            return (int(self._sources[row]), int(self._occurred[row])), (int(self._owners[row]), passage_id)
        return None

    def _link_all(self) -> None:
        """Link all rows; the same as `_link` of each."""
        size = self._size
        in_session = self._sessions[:size] != 0
        rows = np.flatnonzero(in_session | self._dated[:size] & (self.fact_ids == 0))
        if not len(rows):
            return
        of_message = in_session[rows]
        groups = np.stack(
            [
                of_message,
                np.where(of_message, self._sessions[rows], self._sources[rows]),
                np.where(of_message, 0, self._occurred[rows]),
            ]
        )
        keys = np.where(of_message, self._positions[rows], self._owners[rows])
        order = np.lexsort((self._ids[rows], keys, *groups[::-1]))
        rows, keys, groups = rows[order], keys[order], groups[:, order]
        starts = np.flatnonzero(np.append(True, (groups[:, 1:] != groups[:, :-1]).any(axis=0)))
        sessions = [
            first if is_message else (first, occurred) for is_message, first, occurred in groups[:, starts].T.tolist()
        ]
        self._links.fill(rows, sessions, starts, list(zip(keys.tolist(), self._ids[rows].tolist(), strict=True)))

    def _link(self, row: int) -> None:
        self._links.reserve(row + 1)
        found = self._session_of(row)
        if found is not None:
            self._links.insert(row, *found)

    def _unlink(self, row: int) -> None:
        found = self._session_of(row)
        if found is not None:
            self._links.remove(row, *found)

    def _coded(self, row: PassageRow) -> tuple[int, ...]:
        """Return the row in the order and encoding of `_columns`."""
        before, after = row[:3], (row.user_id, self.speakers.code(row.speaker), row.flags, row.fact_id)
        return (*before, self._code(row.source), *row[4:9], _ROLE_CODES[row.role], *after)

    def _code(self, source: str) -> int:
        code = self._source_codes.get(source)
        if code is None:
            code = self._source_codes[source] = len(self._source_names)
            self._source_names.append(source)
        return code

    def change_owner(self, change: OwnerChanged) -> bool:
        """Update the rows of an owner; return whether its source changed."""
        rows = np.flatnonzero(self.owners == change.owner_id).tolist()
        moved = any(self.source_of(row) != change.source for row in rows)
        for row in rows:
            self.change(row, change.source, to_us(change.occurred_at), change.archived, change.dated)
        return moved

    def visible(self, paths: tuple[str, ...] | None) -> NDArray[np.bool_] | None:
        """Return a mask of the rows visible under these paths, shape (n,); None if all are."""
        return None if paths is None else self._visible_names(paths)[self._sources[: self._size]]

    def allowed(self, filters: Filters, owner_ids: NDArray[np.int64] | None) -> NDArray[np.bool_] | None:
        """Return a mask of the rows that satisfy the filters, shape (n,); None if all do.

        :param owner_ids: Owners selected by other filters, if there were such filters.
        """
        masks: list[NDArray[np.bool_]] = []
        if not filters.include_archived and self._archived_count:
            masks.append(~self.archived)
        visible = self.visible(filters.visible)
        if visible is not None:
            masks.append(visible)
        if filters.sources:
            masks.append(self._with_source(lambda name: any(source_matches(name, one) for one in filters.sources)))
        if filters.since is not None:
            masks.append(self.occurred >= to_us(filters.since))
        if filters.until is not None:
            masks.append(self.occurred <= to_us(filters.until))
        if filters.turn is not None:
            masks += self._of_turn(filters.turn)
        if filters.without:
            masks.append(np.isin(self.owners, filters.without, invert=True))
        if owner_ids is not None:
            masks.append(np.isin(self.owners, owner_ids))
        return np.logical_and.reduce(masks) if masks else None

    def _of_turn(self, wanted: TurnFilter) -> list[NDArray[np.bool_]]:
        sessions, end = self._sessions, self._size
        masks: list[NDArray[np.bool_]] = []
        if wanted.session_id is not None:
            masks.append(sessions[:end] == wanted.session_id)
        if wanted.not_session_id is not None:
            masks.append(sessions[:end] != wanted.not_session_id)
        if wanted.user_id is not None:
            masks.append(self._users[:end] == wanted.user_id)
        if wanted.role is not None:
            masks.append(self._roles[:end] == _ROLE_CODES[wanted.role])
        return masks

    def _visible_names(self, paths: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return a mask of the source names in the paths; cached, since names are only ever added."""
        known = self._seen_by.get(paths, _NO_NAMES)
        if len(known) < len(self._source_names):
            more = [is_visible(name, paths) for name in self._source_names[len(known) :]]
            if len(self._seen_by) >= _PATHS_KEPT:
                self._seen_by.clear()
            known = self._seen_by[paths] = np.concatenate([known, np.array(more, dtype=np.bool_)])
        return known

    def _with_source(self, wanted: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Return a mask of the rows whose source is wanted, shape (n,)."""
        chosen = np.array([wanted(name) for name in self._source_names], dtype=np.bool_)
        return chosen[self._sources[: self._size]]

    # --- snapshot ----------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as plain arrays, with those names only that rows have; valid until rows change."""
        columns = {
            f"passage{name}": column[: self._size] for name, column in zip(_COLUMNS, self._columns(), strict=True)
        }
        sources, columns["passage_sources"] = _renumbered(columns["passage_sources"])
        # The first entry is for no speaker.
        speakers, spoken_by = _renumbered(np.append(0, columns["passage_speakers"]))
        columns["passage_speakers"] = spoken_by[1:]
        names = [[self._source_names[code] for code in sources], [self.speakers.name_of(code) for code in speakers]]
        return {**columns, "passage_names": np.frombuffer(json.dumps(names).encode(), np.uint8)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Rows], analyse: Callable[[str], Sequence[str]]) -> PassageAttributes:
        """:raises ValueError: If the arrays are inconsistent."""
        attributes = cls(analyse)
        sources, speakers = json.loads(in_memory(arrays, "passage_names").tobytes())
        columns = [in_memory(arrays, f"passage{name}") for name in _COLUMNS]
        attributes._size = len(columns[0])
        if any(column.shape != (attributes._size,) for column in columns):
            raise ValueError("attributes: the arrays have different lengths")
        for name, column, empty in zip(_COLUMNS, columns, attributes._columns(), strict=True):
            setattr(attributes, name, np.concatenate([column, empty], dtype=empty.dtype, casting="same_kind"))
        for name in sources:
            attributes._code(name)
        for name in speakers:
            attributes.speakers.code(name)
        for codes, count in ((attributes._sources, len(sources)), (attributes._speakers, len(speakers))):
            if attributes._size and not 0 <= codes.min() <= codes.max() < count:
                raise ValueError("attributes: a source or a speaker has no name")
        attributes._derive()
        return attributes

    def compact(self) -> None:
        """Make what is kept per row as small as after a start."""
        self._row_of.reset(self.ids)

    def _columns(self) -> tuple[NDArray[np.generic], ...]:
        return tuple(getattr(self, name) for name in _COLUMNS)

    def _grow(self) -> None:
        capacity = len(self._ids) + max(_MIN_CAPACITY, len(self._ids) // 8)
        for name in _COLUMNS:
            old = getattr(self, name)
            new = np.zeros(capacity, dtype=old.dtype)
            new[: self._size] = old[: self._size]
            setattr(self, name, new)


def _renumbered(codes: NDArray[Any]) -> tuple[list[int], NDArray[np.int32]]:
    """Return the codes that occur, ascending, and for each its place among them."""
    found, places = np.unique(codes, return_inverse=True)
    return found.tolist(), places.astype(np.int32)
