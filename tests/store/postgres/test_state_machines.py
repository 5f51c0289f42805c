"""The state machines of memories and conversations, with three replicas on one database in PostgreSQL.

Each step runs on a replica that is chosen at random, so it needs what others stored. The answers must be those of the
models and of the slow search, which the machines demand of SQLite too. `STATE_MACHINE_EXAMPLES` is the number of
examples, if even the long form (`tests.thoroughness`) has too few.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, run_state_machine_as_test
from pydantic import SecretStr

from tests.conversations.test_search_machine import ConversationMachine
from tests.memories.engine.test_state_machine import EngineMachine
from tests.postgres_databases import PostgresDatabases
from tests.thoroughness import sampled

REPLICAS = 3
EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", sampled(2, 20)))
STEPS = 20


class Replicated(RuleBasedStateMachine):
    """Comes before a machine with one engine, which is then that of the replica that was chosen last."""

    parts: ClassVar[tuple[str, ...]] = ("engine", "data_dir")
    """The attributes that each replica has of its own, its engine first."""

    databases: ClassVar[PostgresDatabases]

    def __init__(self) -> None:
        super().__init__()
        self.machine: Any = self
        self.others: list[tuple[Any, ...]] = []

    @property
    def database_url(self) -> SecretStr | None:
        return SecretStr(self.databases.address_for(self.machine.root))

    def chosen(self) -> tuple[Any, ...]:
        return tuple(getattr(self, part) for part in self.parts)

    def open_others(self) -> None:
        # Hypothesis draws the first query, and repeats a failure with the same one.
        self.chance = Random(next(self.machine.queries))
        for number in range(1, REPLICAS):
            self.others.append(self.chosen())
            self.machine.data_dir = self.machine.root / f"other{number}"
            self.machine.open(roomy=True)

    @invariant()
    def another_replica_goes_on(self) -> None:
        if not self.others:
            self.open_others()
        self.others.append(self.chosen())
        replica = self.others.pop(self.chance.randrange(REPLICAS))
        for part, value in zip(self.parts, replica, strict=True):
            setattr(self, part, value)

    @invariant()
    def every_replica_agrees_with_the_database(self) -> None:
        for engine, *_ in self.others:
            assert list(engine.check()) == []

    def teardown(self) -> None:
        for engine, *_ in self.others:
            engine.close()
        super().teardown()
        self.databases.drop_those_without_folder()


class ReplicatedEngine(Replicated, EngineMachine):
    pass


class ReplicatedConversation(Replicated, ConversationMachine):
    parts = ("engine", "data_dir", "conversations", "removals")


@pytest.mark.parametrize("machine", [ReplicatedEngine, ReplicatedConversation])
def test_replicas_answer_as_one_engine_on_sqlite(machine: type[Replicated], databases: PostgresDatabases):
    machine.databases = databases
    run_state_machine_as_test(
        machine,
        settings=hypothesis_settings(max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None),
    )
