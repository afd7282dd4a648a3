"""Define an operation: work on tables that a command asked the job for, and its progress.

Pure: data classes, what can be derived from them, and their JSON form.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from enum import Enum
from typing import Any, Final

IN_PLACE: Final = "in-place"
SHADOW: Final = "shadow"
"""How a resnapshot writes what it read: its option ``mode``."""


class OperationState(Enum):
    """Names the state of an operation; the last three are final."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Return whether the state is final."""
        return self in _ENDS


_ENDS: Final = frozenset({OperationState.DONE, OperationState.FAILED, OperationState.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Describes an operation as it was asked for: what, by whom and when."""

    id: str  # its time comes first, so that ids sort by age: 20261121T234900-3f2a
    command: str
    tables: tuple[str, ...]  # schema.table
    line: str  # the command line as it was typed
    asked_by: str  # user@host, pid
    asked_at: str  # ISO 8601, UTC
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult:
    """Holds the result of an operation for one table."""

    table: str
    rows_read: int = 0
    added: int = 0
    changed: int = 0
    swept: int = 0  # rows of the lake that the source does not have
    refused: int = 0
    cut_before: int | None = None
    cut_after: int | None = None
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedCommit:
    """Holds the result of a table, recorded before the commit that brings it into the lake.

    The commit carries the number of the reading, so that a job that died in between can tell
    whether it was made.
    """

    reading: int
    result: TableResult
    settles: tuple[int, ...] = ()  # offsets of refused events that the reading corrects


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Says how far an operation is; ``rows`` and ``chunks`` are of its current table."""

    id: str
    state: OperationState
    phase: str = ""
    table: str = ""
    tables_done: int = 0
    tables: int = 0
    chunks: int = 0
    rows: int = 0
    rows_expected: int | None = None
    started_at: str | None = None  # ISO 8601, UTC, like all times here
    updated_at: str = ""
    ended_at: str | None = None
    results: tuple[TableResult, ...] = ()
    commit: AnnouncedCommit | None = None  # the last one announced
    reason: str = ""  # why it failed or was cancelled
    remedy: str = ""
    error_kind: str = ""  # ErrorKind of a failure
    counted_from: str | None = None  # when the phase began
    rows_before: int = 0  # rows at that time, for the rate
    starts: int = 0  # how often the job started it and died

    @property
    def seconds(self) -> float | None:
        """Return the seconds from first start to end or last update; None before the start."""
        return _between(self.started_at, self.ended_at or self.updated_at)

    @property
    def rate(self) -> float | None:
        """Return the rows per second since the phase began; None while there are no rows."""
        seconds = _between(self.counted_from, self.updated_at)
        rows = self.rows - self.rows_before
        return rows / seconds if seconds and rows > 0 else None

    @property
    def eta_seconds(self) -> float | None:
        """Return the seconds until the table's expected rows are read at this rate, or None."""
        if self.rows_expected is None or self.rate is None or self.state.ended:
            return None
        return max(0, self.rows_expected - self.rows) / self.rate

    @property
    def outcome(self) -> str:
        """Return one sentence: the result, or the reason and the remedy; empty before the end."""
        if self.state is OperationState.DONE:
            return summary(self.results)
        if not self.state.ended:
            return ""
        return f"{self.reason}; remedy: {self.remedy}" if self.remedy else self.reason


def summary(results: Iterable[TableResult]) -> str:
    """Return the summed counts of all tables as text.

    Counts of zero are left out, except for the rows read.
    """
    tables = list(results)
    counts = {
        "read": sum(result.rows_read for result in tables),
        "added": sum(result.added for result in tables),
        "changed": sum(result.changed for result in tables),
        "swept": sum(result.swept for result in tables),
        "refused": sum(result.refused for result in tables),
    }
    texts = [f"{counts['read']:,} row{'' if counts['read'] == 1 else 's'} read"]
    texts += [f"{count:,} {name}" for name, count in counts.items() if count and name != "read"]
    notes = [f"{result.table}: {result.note}" for result in tables if result.note]
    heading = f"{len(tables)} table{'' if len(tables) == 1 else 's'}"
    return "; ".join([f"{heading}: {', '.join(texts)}", *notes])


def _between(start: str | None, end: str | None) -> float | None:
    if not start or not end:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def operation_facts(operation: Operation) -> dict[str, Any]:
    """Return the operation as JSON values."""
    return {**asdict(operation), "options": dict(operation.options)}


def operation_of(raw: Mapping[str, Any]) -> Operation | None:
    """Parse the result of ``operation_facts``; return None for anything else."""
    try:
        tables, options = _texts(raw["tables"]), dict(raw["options"])
        _texts([*options, *options.values()])
        return Operation(**{**_known(Operation, raw), "tables": tables, "options": options})
    except (KeyError, TypeError, ValueError):
        return None


def progress_facts(progress: Progress) -> dict[str, Any]:
    """Return the progress as JSON values."""
    return {**asdict(progress), "state": progress.state.value}


def progress_of(raw: Mapping[str, Any]) -> Progress | None:
    """Parse the result of ``progress_facts``; return None for anything else."""
    try:
        parsed = {
            "state": OperationState(raw["state"]),
            "results": tuple(map(_result_of, raw["results"])),
            "commit": _commit_of(raw["commit"]) if raw.get("commit") else None,
        }
        return Progress(**{**_known(Progress, raw), **parsed})
    except (KeyError, TypeError, ValueError):
        return None


def _result_of(raw: object) -> TableResult:
    return TableResult(**_known(TableResult, raw))


def _commit_of(raw: Mapping[str, Any]) -> AnnouncedCommit:
    parsed = {"result": _result_of(raw["result"]), "settles": tuple(raw["settles"])}
    return AnnouncedCommit(**{**_known(AnnouncedCommit, raw), **parsed})


def _known(kind: type[Any], raw: object) -> dict[str, Any]:
    """Return the values of known fields; a later version of wal2lake may have added others.

    Raises TypeError for anything but an object, and if a value is not of its field's type; only
    plain types are checked.
    """
    if not isinstance(raw, Mapping):
        message = f"a {type(raw).__name__} instead of an object"
        raise TypeError(message)
    types = {declared.name: declared.type for declared in fields(kind)}
    known = {name: value for name, value in raw.items() if name in types}
    for name, value in known.items():
        plain = _PLAIN.get(types[name])
        if plain is not None and not isinstance(value, plain):
            message = f"{name} is a {type(value).__name__}"
            raise TypeError(message)
    return known


_PLAIN: Final[dict[object, tuple[type, ...]]] = {
    str: (str,),
    int: (int,),
    float: (float, int),
    int | None: (int, type(None)),
    str | None: (str, type(None)),
}


def _texts(raw: object) -> tuple[str, ...]:
    """Return the list of texts as a tuple; raises TypeError for anything else."""
    if not isinstance(raw, list | tuple) or not all(isinstance(text, str) for text in raw):
        message = "not a list of texts"
        raise TypeError(message)
    return tuple(raw)
