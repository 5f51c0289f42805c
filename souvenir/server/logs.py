"""Logging, set up once: one line per event on standard error, as JSON or as text, for our modules and libraries.

Our own events are rendered by structlog and written at once, without the standard library's records, which take ten
times as long; events of libraries come through one handler and read the same. An exception is shown by its type and
where it was raised. Its message is left out, since it may hold stored text, unless it comes from the operating system
or is one of ours.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import TextIO

import structlog
from structlog.types import EventDict, Processor, WrappedLogger

from souvenir.core.errors import SouvenirError
from souvenir.core.settings import LogFormat, LogLevel

MAX_FRAMES = 12

_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)

_writing = Lock()


class StandardErrorLogger:
    """Writes lines to the current standard error; a line that cannot be written is dropped."""

    def __init__(self, name: str = "root") -> None:
        self.name = name

    def write(self, line: str) -> None:
        with _writing, suppress(OSError, ValueError):
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    debug = info = warning = error = critical = write


class StandardErrorHandler(logging.StreamHandler[TextIO]):
    """Writes to the current standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def configure_logging(level: LogLevel, log_format: LogFormat) -> None:
    """Log everything in this process to standard error; a second call replaces the first."""
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if log_format is LogFormat.JSON
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)
    )
    structlog.configure(
        processors=[*_SHARED, show_exception, renderer],
        logger_factory=cache(StandardErrorLogger),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.value]),
    )
    handler = StandardErrorHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.PositionalArgumentsFormatter()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, show_exception, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [other for other in root.handlers if not isinstance(other, StandardErrorHandler)] + [handler]
    root.setLevel(level.value)
    for name in ("boto3", "botocore", "httpx", "httpx2", "mcp", "s3transfer", "urllib3"):
        # They log every requested address or header, or a line for every request.
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        # Its access log shows query strings; we log requests ourselves.
        library = logging.getLogger(name)
        library.handlers = []
        library.propagate = name != "uvicorn.access"


def show_exception(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Replace `exc_info` with the types of the chained exceptions, safe messages, and the last frames."""
    exc_info = event.pop("exc_info", None)
    if exc_info is True:
        exc_info = sys.exc_info()
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if not isinstance(error, BaseException):
        return event
    chain = list(_chain(error))
    event["error"] = " from ".join(type(link).__qualname__ for link in chain)
    if isinstance(error, SouvenirError | OSError):
        event["error_message"] = str(error)
    frames = traceback.extract_tb(chain[-1].__traceback__)[-MAX_FRAMES:]
    event["frames"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return event


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
