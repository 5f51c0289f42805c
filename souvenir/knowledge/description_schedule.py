"""Submit description jobs for agents with idle sessions, within a daily budget of requests to the model.

The requests of a UTC day are counted in the database before each of them, for all agents and replicas together. An
agent has one job at a time, which the replica that owns its namespace submits; those that wait longest come first.
"""

from __future__ import annotations

from datetime import timedelta

import structlog

from souvenir.core.background import Maintenance
from souvenir.core.errors import Overloaded, ServiceClosing
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.store import meta
from souvenir.store.admin import jobs as job_rows
from souvenir.store.admin.jobs import DESCRIBE
from souvenir.store.graph import description_queue

SCHEDULED = "scheduled"
"""The parameter of jobs that count against the budget."""

ACTOR = "souvenir"
"""The actor of jobs that no caller submitted."""

CHECK_INTERVAL_S = 300.0

REQUESTS_OF_JOB = 10

BACK_OFF = timedelta(hours=1)
"""An agent whose job failed has none for this time."""

log = structlog.get_logger(__name__)


class BudgetSpent(Exception):
    """The requests of the day are used up."""


class DescriptionSchedule:
    """Submits jobs from `start` on, if there is a budget."""

    def __init__(self, engine: MemoryEngine, jobs: Jobs, *, quiet: timedelta, requests_per_day: int) -> None:
        """:param quiet: How long no message was added to a session that is read."""
        self._engine = engine
        self._jobs = jobs
        self._quiet = quiet
        self._requests_per_day = requests_per_day
        self._timer = Maintenance(self.submit_jobs, interval_s=CHECK_INTERVAL_S)

    @property
    def is_on(self) -> bool:
        return self._requests_per_day > 0

    def start(self) -> None:
        if self.is_on:
            self._timer.start()

    def close(self) -> None:
        self._timer.close()

    def spend(self) -> None:
        """Count a request.

        :raises BudgetSpent: If there were as many today as are allowed.
        """
        is_counted = self.is_on and self._engine.write_rows(
            lambda connection: meta.count_of_day(connection, meta.DESCRIBE_REQUESTS, utc_now(), self._requests_per_day)
        )
        if not is_counted:
            raise BudgetSpent("The requests of DESCRIBE_REQUESTS_PER_DAY are used up until midnight UTC")

    def submit_jobs(self) -> None:
        """Submit a job for each agent with idle sessions to read, at most one for each request that is left today."""
        now = utc_now()
        with self._engine.namespace(Scope()) as (connection, _):
            left = self._requests_per_day - meta.counted_on_day(connection, meta.DESCRIBE_REQUESTS, now)
            names = [
                name
                for name in description_queue.waiting_agents(connection, quiet_since=now - self._quiet)
                if self._engine.owns(name)
                and job_rows.may_be_queued(connection, DESCRIBE, name, none_failed_since=now - BACK_OFF)
            ]
        try:
            for name in names[: max(left, 0)]:
                parameters = {"session": None, "limit": REQUESTS_OF_JOB, SCHEDULED: True}
                self._jobs.submit(DESCRIBE, Scope(name, ACTOR), parameters)
        except (Overloaded, ServiceClosing) as error:
            log.warning("describing_waits", reason=error.message)
