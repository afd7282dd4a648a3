"""An operation: work on tables that somebody asked the job for, and how far it is.

Pure: the shapes, what follows from them, and their form as JSON.
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
    """Where an operation is; the last three are its ends."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in _ENDS


_ENDS: Final = frozenset({OperationState.DONE, OperationState.FAILED, OperationState.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What was asked for, by whom and when."""

    id: str  # its time comes first, so that ids sort by age: 20261121T234900-3f2a
    command: str
    tables: tuple[str, ...]  # schema.table
    line: str  # the command line as it was typed
    asked_by: str  # user@host, pid
    asked_at: str  # ISO 8601, UTC
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult:
    """What came of one table."""

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
class Commit:
    """What came of a table, said before the commit that brings it into the lake.

    The commit has the number of the reading, so that a job which died about then knows which it is.
    """

    reading: int
    result: TableResult
    settles: tuple[int, ...] = ()  # offsets of refused events that the reading makes good


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an operation is. ``rows`` and ``chunks`` are those of the table it is at."""

    id: str
    state: OperationState
    phase: str = ""
    table: str = ""
    tables_done: int = 0
    tables: int = 0
    chunks: int = 0
    rows: int = 0
    rows_expected: int | None = None
    started_at: str | None = None  # ISO 8601, UTC, as all times here
    updated_at: str = ""
    ended_at: str | None = None
    results: tuple[TableResult, ...] = ()
    commit: Commit | None = None  # the newest that was about to be made
    reason: str = ""  # why it failed or was cancelled
    remedy: str = ""
    error_kind: str = ""  # ErrorKind of a failure
    counted_from: str | None = None  # when the phase began, and
    rows_before: int = 0  # the rows there were then: for the rate
    starts: int = 0  # how often the job began it and died

    @property
    def seconds(self) -> float | None:
        """From the first start to the end, or to the last sign of it; None before."""
        return _between(self.started_at, self.ended_at or self.updated_at)

    @property
    def rate(self) -> float | None:
        """Rows per second since the phase began; None while there are none."""
        seconds = _between(self.counted_from, self.updated_at)
        rows = self.rows - self.rows_before
        return rows / seconds if seconds and rows > 0 else None

    @property
    def eta_seconds(self) -> float | None:
        """Until the rows that are expected of this table are there, at the present rate."""
        if self.rows_expected is None or self.rate is None or self.state.ended:
            return None
        return max(0, self.rows_expected - self.rows) / self.rate

    @property
    def outcome(self) -> str:
        """One sentence: what came of it, or why nothing did and what to do; empty before."""
        if self.state is OperationState.DONE:
            return summary(self.results)
        if not self.state.ended:
            return ""
        return f"{self.reason}; remedy: {self.remedy}" if self.remedy else self.reason


def summary(results: Iterable[TableResult]) -> str:
    """The counts of all tables, without those that are zero everywhere but for the rows read."""
    found = list(results)
    counts = {
        "read": sum(result.rows_read for result in found),
        "added": sum(result.added for result in found),
        "changed": sum(result.changed for result in found),
        "swept": sum(result.swept for result in found),
        "refused": sum(result.refused for result in found),
    }
    told = [f"{counts['read']:,} row{'' if counts['read'] == 1 else 's'} read"]
    told += [f"{count:,} {name}" for name, count in counts.items() if count and name != "read"]
    notes = [f"{result.table}: {result.note}" for result in found if result.note]
    tables = f"{len(found)} table{'' if len(found) == 1 else 's'}"
    return "; ".join([f"{tables}: {', '.join(told)}", *notes])


def _between(start: str | None, end: str | None) -> float | None:
    if not start or not end:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def operation_facts(operation: Operation) -> dict[str, Any]:
    """The operation in terms of JSON."""
    return {**asdict(operation), "options": dict(operation.options)}


def operation_of(raw: Mapping[str, Any]) -> Operation | None:
    """The operation that ``operation_facts`` made this of; None where it is no such thing."""
    try:
        tables, options = _texts(raw["tables"]), dict(raw["options"])
        _texts([*options, *options.values()])
        return Operation(**{**_known(Operation, raw), "tables": tables, "options": options})
    except (KeyError, TypeError, ValueError):
        return None


def progress_facts(progress: Progress) -> dict[str, Any]:
    """The progress in terms of JSON."""
    return {**asdict(progress), "state": progress.state.value}


def progress_of(raw: Mapping[str, Any]) -> Progress | None:
    """The progress that ``progress_facts`` made this of; None where it is no such thing."""
    try:
        made = {
            "state": OperationState(raw["state"]),
            "results": tuple(map(_result_of, raw["results"])),
            "commit": _commit_of(raw["commit"]) if raw.get("commit") else None,
        }
        return Progress(**{**_known(Progress, raw), **made})
    except (KeyError, TypeError, ValueError):
        return None


def _result_of(raw: Mapping[str, Any]) -> TableResult:
    return TableResult(**_known(TableResult, raw))


def _commit_of(raw: Mapping[str, Any]) -> Commit:
    made = {"result": _result_of(raw["result"]), "settles": tuple(raw["settles"])}
    return Commit(**{**_known(Commit, raw), **made})


def _known(kind: type[Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Without what a later version of wal2lake may have added.

    Raises TypeError where a value is not of its field's type, as far as that is a plain one.
    """
    types = {each.name: each.type for each in fields(kind)}
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
    """Raises TypeError for what is no list of texts."""
    if not isinstance(raw, list | tuple) or not all(isinstance(each, str) for each in raw):
        message = "not a list of texts"
        raise TypeError(message)
    return tuple(raw)
