"""Finds the state that the events of each stream give, and what is wrong with them. Pure.

An event that is missing, doubled or refused ends the fold of its stream: the state stays as it was
before, because whatever followed was decided on another. Versions are looked at to the end.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import localcontext
from enum import StrEnum
from itertools import chain, groupby
from operator import attrgetter
from typing import Final, NamedTuple

from cdc.derive.fold.program import ARITHMETIC, Apply, RefusedEventError
from cdc.derive.fold.values import Column, UnfitError, Value

MOST_BYTES: Final = 1_000_000
"""How long the texts of a state may be together, in UTF-8. All other values are short."""
MOST_REASON: Final = 1_000
"""How many characters of a reason are kept."""
State = dict[str, Value]
_Written = dict[str, object]


class Kind(StrEnum):
    """Says what is wrong with an event, or with its number."""

    GAP = "gap"
    DOUBLE = "double"
    BEFORE_FIRST = "before first"
    NO_VERSION = "no version"
    REFUSED = "refused"
    ERROR = "error"
    VALUE = "value"
    TOO_LARGE = "too large"


class Event(NamedTuple):
    """Describes an event and the stream that it is of, by number and by names.

    A NULL among the names counts like a value: it makes a stream of its own.
    """

    stream: int
    names: tuple[object, ...]  # of the stream
    version: int | None
    values: dict[str, object]


class Fault(NamedTuple):
    """Says what is wrong with a stream at a version: for a gap, the first one that is missing."""

    version: int | None
    kind: Kind
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Says how the streams of a table are folded."""

    apply: Apply
    columns: Sequence[Column]
    first: int  # the version of the first event of each stream


@dataclass(slots=True)
class Folded:
    """Holds what the events of a stream give: its state after ``version``; None for no row."""

    names: tuple[object, ...]
    version: int | None = None
    state: State | None = None
    faults: list[Fault] = field(default_factory=list)
    ended: bool = False

    def fails(self, version: int | None, kind: Kind, detail: str) -> None:
        """Note a fault, after which no event of the stream is applied."""
        self.faults.append(Fault(version, kind, detail))
        self.ended = True


class _FaultError(Exception):
    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail


def fold_streams(events: Iterable[Event], rules: Rules) -> Iterator[Folded]:
    """Yield what each stream gives, from events in the order of their streams, then of versions.

    Among events of equal version the first one counts. Events without a version are last.
    """
    for _, stream in groupby(events, attrgetter("stream")):
        with localcontext(ARITHMETIC):
            folded = _fold(stream, rules)
        yield folded


def _fold(stream: Iterator[Event], rules: Rules) -> Folded:
    begin = next(stream)
    folded, expected = Folded(begin.names), rules.first
    if None in begin.names:
        folded.fails(None, Kind.NO_VERSION, _counted(1 + _length(stream), "no stream"))
        return folded
    for version, same in groupby(chain([begin], stream), attrgetter("version")):
        event, more = _first(same)
        if version is None:
            folded.fails(None, Kind.NO_VERSION, _counted(1 + more, "no version"))
            break
        _count(folded, version, expected, rules.first)
        if not folded.ended:
            _apply(folded, event, rules)
        if more:
            folded.fails(version, Kind.DOUBLE, f"{1 + more} events have this version")
        expected = max(version + 1, expected)
    return folded


def _count(folded: Folded, version: int, expected: int, first: int) -> None:
    """Note what is wrong with a version where another was expected."""
    if version < first:
        folded.fails(version, Kind.BEFORE_FIRST, f"the first version is {first}")
    elif version > expected:
        folded.fails(expected, Kind.GAP, _missing(expected, version - 1))


def _first(events: Iterator[Event]) -> tuple[Event, int]:
    """Return the first event, and how many others there are."""
    return next(events), _length(events)


def _apply(folded: Folded, event: Event, rules: Rules) -> None:
    try:
        folded.state = _next(folded.state, event, rules)
        folded.version = event.version
    except _FaultError as fault:
        folded.fails(event.version, fault.kind, fault.detail)


def _next(state: State | None, event: Event, rules: Rules) -> State | None:
    """Return the state after an event; raises _FaultError if there is none."""
    try:
        result = rules.apply(None if state is None else dict(state), event.values)
    except RefusedEventError as error:
        raise _FaultError(Kind.REFUSED, _held(error.reason)) from None
    except (MemoryError, RecursionError):
        raise  # it depends on the machine, and not on the events alone
    except Exception as error:  # noqa: BLE001 - whatever it is, the other streams go on
        raise _FaultError(Kind.ERROR, type(error).__name__) from None
    return None if result is None else _fitted(result, rules.columns)


def _fitted(result: object, columns: Sequence[Column]) -> State:
    if not isinstance(result, dict):
        what = f"apply returned a value of Python's {type(result).__name__}"
        raise _FaultError(Kind.VALUE, what)
    missing = [column.name for column in columns if column.name not in result]
    if missing or len(result) != len(columns):
        what = f"{missing[0]} is missing" if missing else "there are more columns than declared"
        raise _FaultError(Kind.VALUE, what)
    state = {column.name: _value(column, result[column.name]) for column in columns}
    texts = [value for value in state.values() if isinstance(value, str)]
    if texts and len("".join(texts).encode()) > MOST_BYTES:
        raise _FaultError(Kind.TOO_LARGE, f"its texts have more than {MOST_BYTES:,} bytes")
    return state


def _value(column: Column, value: object) -> Value:
    try:
        return column.type.fitted(value)
    except UnfitError as error:
        raise _FaultError(Kind.VALUE, f"{column.name}: {error}") from None


def _held(reason: str) -> str:
    """Return the reason as text that the lake can hold."""
    return reason[:MOST_REASON].encode(errors="replace").decode().replace("\0", "?")


def _counted(count: int, what: str) -> str:
    return f"1 event has {what}" if count == 1 else f"{count} events have {what}"


def _missing(begin: int, end: int) -> str:
    if begin == end:
        return f"version {begin} is missing"
    return f"versions {begin} to {end} are missing"


def _length(events: Iterable[Event]) -> int:
    return sum(1 for _ in events)
