"""Write log lines: JSON objects for machines, readable lines on a terminal.

Each long-running command calls ``configure()`` once. All other code uses
``structlog.get_logger()`` as in ``log.info("table merged", table="shop.orders", rows=3)``: an
event in lower case with facts beside it, never a row's value. Of an exception, including one that
ends a thread or the process, the log has its class, its codes and where it was raised, but not its
message.
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
    """Send our log lines and those of libraries to the stream (default: stderr) in one format.

    The environment variable of ``LEVEL_VARIABLE`` sets the level, by default INFO.
    """
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
    sys.excepthook = _log_end_of_process
    threading.excepthook = _log_end_of_thread
    # At INFO these log every request and every call into the JVM.
    for chatty in ("py4j", "httpx", "httpcore"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def quiet() -> None:
    """Log only warnings, on stderr: stdout is for a command's own output."""
    os.environ.setdefault(LEVEL_VARIABLE, "WARNING")
    configure()


def _renderer(out: TextIO) -> Processor:
    if out.isatty():
        return structlog.dev.ConsoleRenderer()
    return structlog.processors.JSONRenderer(ensure_ascii=False, default=str)


def trace(_logger: object, _method: str, event: Event) -> Event:
    """Replace an event's ``exc_info`` by a traceback that contains no value of a row."""
    exc_info = event.pop("exc_info", None)
    current = sys.exc_info() if exc_info is True else exc_info
    error = current[1] if isinstance(current, tuple) else current
    if isinstance(error, BaseException):
        event["exception"] = traceback_of(error)
    return event


def _log_end_of_process(
    _kind: type[BaseException], error: BaseException, _traceback: TracebackType | None
) -> None:
    structlog.get_logger(__name__).critical("the process ends", exc_info=error)


def _log_end_of_thread(hook: threading.ExceptHookArgs) -> None:
    name = hook.thread.name if hook.thread is not None else ""
    if hook.exc_value is not None:
        structlog.get_logger(__name__).error(
            "the thread ends", thread=name, exc_info=hook.exc_value
        )


def hide_secrets(_logger: object, _method: str, event: Event) -> Event:
    """Hide facts with a secret's name, and passwords in texts (URLs, connection strings)."""
    for name, value in event.items():
        if SECRET_NAMES.search(name):
            event[name] = HIDDEN
        elif isinstance(value, str):
            event[name] = without_secrets(value)
    return event


def without_secrets(text: str) -> str:
    """Return the text with the passwords of URLs and connection strings hidden."""
    return SECRET_IN_PAIR.sub(rf"\1{HIDDEN}", SECRET_IN_URL.sub(rf"\1{HIDDEN}\2", text))
