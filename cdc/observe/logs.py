"""Log lines: one JSON object per line for machines, one readable line on a terminal.

``configure()`` is called once by each long-running command; everybody else takes
``structlog.get_logger()`` and says ``log.info("table merged", table="shop.orders", rows=3)``:
an event in lower case and facts beside it, never a row value. Of an exception, also one that ends
a thread or the process, it is written where it was raised, its class and codes, not its words.
"""

import logging
import os
import re
import sys
import threading
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any, Final, TextIO

import structlog
from structlog.types import Processor

from cdc.observe.defects import traceback_of

LEVEL_VARIABLE: Final = "WAL2LAKE_LOG_LEVEL"
HIDDEN: Final = "***"
SECRET_NAMES: Final = re.compile(r"passw|secret|token|credential", re.IGNORECASE)
SECRET_IN_URL: Final = re.compile(r"(://[^:@/\s]*:)[^@/\s]+(@)")
SECRET_IN_PAIR: Final = re.compile(r"(password\s*=\s*)('[^']*'|\"[^\"]*\"|[^\s,;]+)", re.IGNORECASE)

Event = MutableMapping[str, Any]


def configure(stream: TextIO | None = None) -> None:
    """Send our log lines and those of the libraries to the stream (stderr) in one form."""
    out = sys.stderr if stream is None else stream
    level = logging.getLevelNamesMapping().get(os.environ.get(LEVEL_VARIABLE, "INFO").upper(), 20)
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        trace,
        hide_secrets,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _renderer(out),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)
    sys.excepthook = _ended_by
    threading.excepthook = _thread_ended_by
    # These say at INFO what every request and every call into the JVM was.
    for chatty in ("py4j", "httpx", "httpcore"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _renderer(out: TextIO) -> Processor:
    if out.isatty():
        return structlog.dev.ConsoleRenderer()
    return structlog.processors.JSONRenderer(ensure_ascii=False, default=str)


def trace(_logger: object, _method: str, event: Event) -> Event:
    """Put where an error was raised, and what may be said of it, in its place."""
    given = event.pop("exc_info", None)
    found = sys.exc_info() if given is True else given
    error = found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        event["exception"] = traceback_of(error)
    return event


def _ended_by(
    _kind: type[BaseException], error: BaseException, _traceback: TracebackType | None
) -> None:
    structlog.get_logger(__name__).critical("the process ends", exc_info=error)


def _thread_ended_by(given: threading.ExceptHookArgs) -> None:
    name = given.thread.name if given.thread is not None else ""
    if given.exc_value is not None:
        structlog.get_logger(__name__).error(
            "the thread ends", thread=name, exc_info=given.exc_value
        )


def hide_secrets(_logger: object, _method: str, event: Event) -> Event:
    """Replace what is called a secret, and passwords inside texts (URLs, connection strings)."""
    for name, value in event.items():
        if SECRET_NAMES.search(name):
            event[name] = HIDDEN
        elif isinstance(value, str):
            event[name] = without_secrets(value)
    return event


def without_secrets(text: str) -> str:
    return SECRET_IN_PAIR.sub(rf"\1{HIDDEN}", SECRET_IN_URL.sub(rf"\1{HIDDEN}\2", text))
