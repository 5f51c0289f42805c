"""A process that is killed during writes loses no acknowledged write."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from souvenir.core.settings import Settings
from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder
from tests.killing import lines_until_killed

PROCESS = "tests.store.acknowledging_writer"
ROUNDS = 3


@dataclass
class Ledger:
    """Acknowledged writes by id, and begun ones with an unknown outcome."""

    texts: dict[int, str] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)
    begun: set[tuple[str, int]] = field(default_factory=set)

    def read(self, line: str) -> None:
        state, verb, memory_id, text = line.split()
        id_ = int(memory_id)
        match state, verb:
            case "done", "add":
                assert id_ not in self.texts, "an id was given out twice"
                self.texts[id_] = text
            case "done", "change":
                self.changed.add(id_)
            case "done", "delete":
                self.deleted.add(id_)
            case _:
                self.begun.add((verb, id_))

    def expect_of(self, stored: dict[int, str]) -> None:
        for id_, text in self.texts.items():
            if id_ in self.deleted:
                assert id_ not in stored, f"{text} is back"
            elif id_ not in stored:
                assert ("delete", id_) in self.begun, f"{text} is lost"
            elif id_ in self.changed:
                assert stored[id_].startswith(f"{text} as it was changed"), f"the change of {text} is lost"
            elif ("change", id_) in self.begun:
                assert stored[id_].startswith(f"{text} as it was")
            else:
                assert stored[id_] == f"{text} as it was said"


def test_acknowledged_writes_survive_a_kill(tmp_path: Path):
    ledger, chance = Ledger(), random.Random(8900)
    for number in range(ROUNDS):
        said = lines_until_killed(PROCESS, tmp_path, f"r{number}", lines=chance.randrange(30, 250))
        assert len(said) >= 30
        for line in said:
            ledger.read(line)
        with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
            engine.warm_up()
            assert list(engine.check()) == []
            page = engine.page(Scope(), offset=0, limit=100_000)
            ledger.expect_of({memory.id: memory.text for memory in page.memories})
    assert len(ledger.deleted) > ROUNDS
    assert len(ledger.changed) > ROUNDS
    database = apsw.Connection(str(tmp_path / "souvenir.db"))
    assert database.execute("PRAGMA integrity_check").get == "ok"
    database.close()
