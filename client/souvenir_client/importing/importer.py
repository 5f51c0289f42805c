"""Imports a file in the format of its kind. Importing the same file again changes nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO

from souvenir_client.errors import Forbidden, NotImportable
from souvenir_client.importing.export_sender import ExportSender
from souvenir_client.importing.graph_senders import ConceptSender, EntitySender
from souvenir_client.importing.kinds import CONVERSATIONS, Kind, detect, read
from souvenir_client.importing.memory_sender import MemorySender
from souvenir_client.importing.records import (
    Altered,
    BlockRecord,
    ConceptRelationStatement,
    ConceptStatement,
    Conversation,
    ExportedLine,
    ImportedEntity,
    ImportedRelation,
    MemoryRecord,
    Missing,
    Reading,
    Record,
    Skipped,
    TakenLevels,
)
from souvenir_client.importing.report import ImportReport, Progress, Tally
from souvenir_client.importing.session_senders import BlockSender, SessionSender
from souvenir_client.sync.client import Souvenir

NAME_AN_AGENT = "conversations need an agent; set it (agent, --agent)"
NO_GRAPH_SOURCE = "a knowledge graph has a fixed source; omit it (source, --source)"
NO_SOURCE = "conversations have no source; omit it (source, --source)"


def import_file(
    client: Souvenir,
    path: Path | str,
    *,
    kind: Kind | None = None,
    agent: str | None = None,
    source: str | None = None,
    namespace: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> ImportReport:
    """Import a file or a folder.

    Invalid items are counted with their reason and place, and do not stop the import. After an interruption, import the
    same file again.

    :param kind: Format of the file. Default: detected.
    :param agent: Agent of the memories and conversations; created if it is new. An agent is a namespace.
    :param source: Prefix of the source paths. Default: one for each kind.
    :param namespace: Namespace of memories without an agent. Default: the client's.
    :param progress: Called after every item.
    :raises NotImportable: If the file is of no kind that is known, or cannot be read.
    :raises ValueError: If an agent and another namespace are given.
    :raises SouvenirError: If the service cannot be reached or refuses altogether.
    """
    path = Path(path)
    if agent and namespace and agent != namespace:
        raise ValueError("an agent is a namespace: give agent or namespace, not different names")
    found = kind or detect(path)
    prefix = None if source is None else source.strip("/ ") or None
    reading = read(found, path, prefix)
    named = agent or namespace or reading.agent
    if found in CONVERSATIONS and source is not None:
        raise NotImportable(str(path), NO_SOURCE)
    if found is Kind.MCP_MEMORY and source is not None:
        raise NotImportable(str(path), NO_GRAPH_SOURCE)
    if found in CONVERSATIONS and named is None:
        raise NotImportable(str(path), NAME_AN_AGENT)
    with tempfile.TemporaryFile() as spool:
        run = _Import(client, path, reading, spool, namespace=named)
        run.send(progress, as_agent=bool(agent or reading.agent))
        return run.tally.report(found)


class _Import:
    """One import; its senders are created when they are first used.

    :param spool: An empty file, for lines that are sent as one stream.
    """

    def __init__(
        self, client: Souvenir, path: Path, reading: Reading, spool: IO[bytes], *, namespace: str | None
    ) -> None:
        self.tally = Tally()
        self._client = client if namespace is None else client.in_namespace(namespace)
        self._path = path
        self._reading = reading
        self._namespace = namespace
        self._done = 0
        self._progress: Callable[[Progress], None] = lambda _: None
        self._finishing: list[Callable[[], None]] = []
        self._spool = spool

    def send(self, progress: Callable[[Progress], None], *, as_agent: bool) -> None:
        """:param as_agent: True if the namespace is that of an agent, even if it only gets memories."""
        self._progress = progress
        if as_agent:
            self._made_agent()
        for item in self._reading.items:
            for record in item:
                self._take(record)
            self._done += 1
            self._report()
        for finish in self._finishing:
            finish()
        self._report()

    def _take(self, record: Record) -> None:
        match record:
            case MemoryRecord():
                self._memories.add(record)
            case ImportedEntity() | ImportedRelation():
                self._graphs.add(record)
            case Conversation():
                self._sessions.add(record)
            case ConceptStatement() | ConceptRelationStatement():
                self._concepts.add(record)
            case BlockRecord():
                self._blocks.add(record)
            case TakenLevels():
                self._take_levels(record)
            case ExportedLine():
                self._exported.add(record)
            case Skipped() | Altered():
                self.tally.note(record)
            case Missing():
                self.tally.missing.append(record)

    def _report(self) -> None:
        self._progress(self.tally.progress(self._done, self._reading.total))

    def _made_agent(self) -> str:
        """Return the agent's name; the agent is created if necessary."""
        if self._namespace is None:
            raise NotImportable(str(self._path), NAME_AN_AGENT)
        self._client.agents.create(name=self._namespace)
        return self._namespace

    def _take_levels(self, record: TakenLevels) -> None:
        try:
            self._client.agents.set_access(self._made_agent(), **dict.fromkeys(record.levels, False))
        except Forbidden as error:
            self.tally.note(Skipped(record.place, f"access levels need an admin key: {error.detail}"))

    @cached_property
    def _memories(self) -> MemorySender:
        memories = MemorySender(self._client, self.tally, self._reading.below)
        self._finishing.append(memories.finish)
        return memories

    @cached_property
    def _graphs(self) -> EntitySender:
        graphs = EntitySender(self._client, self.tally)
        self._finishing.append(graphs.finish)
        return graphs

    @cached_property
    def _concepts(self) -> ConceptSender:
        concepts = ConceptSender(self._client, self.tally, self._made_agent(), self._report)
        self._finishing.append(concepts.finish)
        return concepts

    @cached_property
    def _exported(self) -> ExportSender:
        exported = ExportSender(self._client, self.tally, self._spool, self._report)
        self._finishing.append(exported.finish)
        return exported

    @cached_property
    def _sessions(self) -> SessionSender:
        return SessionSender(self._client, self.tally, self._made_agent())

    @cached_property
    def _blocks(self) -> BlockSender:
        return BlockSender(self._client, self.tally, self._made_agent())
