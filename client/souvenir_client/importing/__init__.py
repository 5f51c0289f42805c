"""Files of other systems into the service: what they say, and the sending of it.

import_file     reads a file and sends what is not there yet
detect, read    which kind a file is, and its records, without a service

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
