"""Import of files of other systems.

import_file         imports a file or a folder into the service
detect, read        the kind of a file, and its records, without a service

    with Souvenir() as souvenir:
        report = import_file(souvenir, "conversations.json", agent="my_agent")
        print(report.messages.imported, report.skipped)
"""

from __future__ import annotations

from souvenir_client.importing.importer import import_file
from souvenir_client.importing.kinds import Kind, detect, read
from souvenir_client.importing.records import (
    Altered,
    BlockRecord,
    Conversation,
    ExportedLine,
    MemoryRecord,
    Missing,
    Reading,
    Record,
    Skipped,
    TakenLevels,
    Turn,
)
from souvenir_client.importing.report import Counts, ImportReport, Progress, Reason

__all__ = [
    "Altered",
    "BlockRecord",
    "Conversation",
    "Counts",
    "ExportedLine",
    "ImportReport",
    "Kind",
    "MemoryRecord",
    "Missing",
    "Progress",
    "Reading",
    "Reason",
    "Record",
    "Skipped",
    "TakenLevels",
    "Turn",
    "detect",
    "import_file",
    "read",
]
