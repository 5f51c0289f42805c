"""Run a hook from its input to its end.

Invariants: a hook never blocks the editor. It always ends with success and within its budget, and writes nothing but
context to standard output; errors are lines on standard error. While the circuit breaker is open, no call is made.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import BinaryIO, TextIO

from souvenir_client.errors import ApiError, Overloaded, SouvenirError
from souvenir_client.hooks.breaker import Breaker
from souvenir_client.hooks.budget import Budget, enforce, process_age_s
from souvenir_client.hooks.events import MAX_INPUT_BYTES, Hook, UnreadableEvent, context_output, read_event
from souvenir_client.hooks.project import Project
from souvenir_client.hooks.state import state_dir

BUDGETS_S: Mapping[Hook, float] = {Hook.SESSION_START: 2.0, Hook.PROMPT: 2.0, Hook.STOP: 10.0, Hook.PRE_COMPACT: 10.0}
BUDGET_VARIABLE = "SOUVENIR_HOOK_BUDGET_S"
SWITCH_VARIABLE = "SOUVENIR_HOOKS"
ADDRESS_VARIABLES = ("SOUVENIR_URL", "MEMORY_SERVER_URL")
KEY_VARIABLE = "SOUVENIR_API_KEY"

SERVER_FAILURES = 500
"""Smallest status code of a failure of the service."""


class Running:
    """One run of a hook.

    :param environment: The environment, overridden by the command line.
    """

    def __init__(self, hook: Hook, environment: Mapping[str, str], budget: Budget, errors: TextIO) -> None:
        self._hook, self._environment, self._budget, self._errors = hook, environment, budget, errors
        self._folder = state_dir(environment)
        self._url = next((environment[name] for name in ADDRESS_VARIABLES if environment.get(name)), None)
        self._breaker = Breaker(self._folder, self._url or "")
        self._is_asking = False
        self._first_failure = threading.Lock()

    def run(self, raw: bytes) -> str:
        """The text for standard output."""
        try:
            if self._environment.get(SWITCH_VARIABLE, "").lower() == "off" or self._breaker.is_open():
                return ""
            return self._ask(raw)
        except (UnreadableEvent, ValueError, OSError) as error:
            self.report(str(error))
        except Exception as error:  # noqa: BLE001 - the boundary: a fault of ours must not reach the editor
            self.report(f"internal error of the hook: {type(error).__name__}: {error}")
        return ""

    def out_of_time(self) -> None:
        """Report that the run was ended by the timer."""
        if self._is_asking:
            self._failed(f"the hook took longer than its {self._budget.total_s:g} s")

    def report(self, sentence: str) -> None:
        print(f"souvenir hook {self._hook.value}: {sentence}", file=self._errors, flush=True)

    def _ask(self, raw: bytes) -> str:
        event = read_event(raw)
        place = Project.of(event, self._environment)
        # These imports load httpx, which a hook without work does not need.
        from souvenir_client.hooks.capture import capture
        from souvenir_client.hooks.recall import recall
        from souvenir_client.hooks.service import Service

        self._is_asking = True
        context = ""
        try:
            api_key = self._environment.get(KEY_VARIABLE) or None
            with Service(self._url, api_key, place.agent, self._budget) as service:
                if self._hook in (Hook.SESSION_START, Hook.PROMPT):
                    context = recall(self._hook, event, place, service, self._folder, self._budget, self.report)
                else:
                    capture(self._hook, event, place, service, self._folder, self._budget, self.report)
        except SouvenirError as error:
            if not _is_refusal(error):
                self._failed(str(error))
                return ""
            self.report(str(error))
        finally:
            self._is_asking = False
        self._succeeded()
        return context_output(self._hook, context) if context else ""

    def _succeeded(self) -> None:
        """Record the success; the context is returned even if this fails."""
        try:
            self._breaker.succeeded(self._lock_wait_s)
        except OSError as error:
            self.report(str(error))

    def _failed(self, sentence: str) -> None:
        """Record the failure once per run: the timer may fire in the meantime."""
        if not self._first_failure.acquire(blocking=False):
            return
        try:
            rest_s = self._breaker.failed(self._lock_wait_s)
        except OSError as error:
            self.report(f"{sentence} The state cannot be written: {error}")
            return
        self.report(sentence if rest_s is None else f"{sentence} Hooks are disabled for {rest_s:g} s.")

    @property
    def _lock_wait_s(self) -> float:
        """The remaining time is for the error message."""
        return self._budget.left_s / 2


def _is_refusal(error: SouvenirError) -> bool:
    """Return True if the service is available and refused the request: no reason to open the circuit breaker."""
    return isinstance(error, ApiError) and error.status < SERVER_FAILURES and not isinstance(error, Overloaded)


def main(hook: Hook, environment: Mapping[str, str], read: BinaryIO, written: TextIO, errors: TextIO) -> None:
    """Run a hook in this process; if its time is up, the process ends here."""
    budget = Budget(_budget_s(hook, environment), spent_s=process_age_s())
    running = Running(hook, environment, budget, errors)
    clock = enforce(budget, running.out_of_time)
    # If possible, httpx loads its command line, including rich: a quarter of all code that a hook loads.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None is how an import is refused
    output = running.run(read.read(MAX_INPUT_BYTES))
    clock.cancel()
    written.write(output)
    written.flush()


def _budget_s(hook: Hook, environment: Mapping[str, str]) -> float:
    try:
        named = float(environment.get(BUDGET_VARIABLE, ""))
    except ValueError:
        return BUDGETS_S[hook]
    return named if 0 < named < float("inf") else BUDGETS_S[hook]
