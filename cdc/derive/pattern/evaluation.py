"""Make a condition of a term: a function that is fast, and exact as the types of the columns are.

The types are checked once. Afterwards every operation meets only values that it can combine.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from cdc.derive.pattern.matcher import Condition
from cdc.derive.pattern.running import Row, Seen, Slot, State
from cdc.derive.pattern.terms import Computed, Constant, Here, Operation, Term, There, Total
from cdc.derive.pattern.values import Value, add, compare, multiply, subtract
from cdc.errors import CdcError, ErrorKind


class Kind(StrEnum):
    """Says what a value is. A time and an interval are whole numbers, of microseconds."""

    BOOLEAN = "a boolean"
    NUMBER = "a number"
    TEXT = "text"
    TIME = "a time"
    DATE = "a date"
    INTERVAL = "an interval"
    NULL = "NULL"


class _UnfitError(Exception):
    """Says what does not fit what."""


_CAST: Final = "cast one side; write a time as TIMESTAMP '2024-01-31 10:00'"
Evaluated = Callable[[Sequence[Row], int, State], Value | None]
_COMPARED: Final[dict[Operation, Callable[[int], bool]]] = {
    Operation.EQUAL: lambda order: order == 0,
    Operation.UNEQUAL: lambda order: order != 0,
    Operation.LESS: lambda order: order < 0,
    Operation.LESS_EQUAL: lambda order: order <= 0,
    Operation.GREATER: lambda order: order > 0,
    Operation.GREATER_EQUAL: lambda order: order >= 0,
}
_COUNTED: Final[dict[Operation, Callable[[Value, Value], Value]]] = {
    Operation.ADD: add,
    Operation.SUBTRACT: subtract,
    Operation.MULTIPLY: multiply,
}
_TIMES: Final = frozenset({Kind.TIME, Kind.DATE})
_RESULTS: Final[dict[tuple[Operation, Kind, Kind], Kind]] = {
    **{(each, Kind.NUMBER, Kind.NUMBER): Kind.NUMBER for each in _COUNTED},
    (Operation.ADD, Kind.TIME, Kind.INTERVAL): Kind.TIME,
    (Operation.ADD, Kind.DATE, Kind.INTERVAL): Kind.TIME,
    (Operation.ADD, Kind.INTERVAL, Kind.TIME): Kind.TIME,
    (Operation.ADD, Kind.INTERVAL, Kind.DATE): Kind.TIME,
    (Operation.ADD, Kind.INTERVAL, Kind.INTERVAL): Kind.INTERVAL,
    (Operation.SUBTRACT, Kind.TIME, Kind.INTERVAL): Kind.TIME,
    (Operation.SUBTRACT, Kind.DATE, Kind.INTERVAL): Kind.TIME,
    (Operation.SUBTRACT, Kind.TIME, Kind.TIME): Kind.INTERVAL,
    (Operation.SUBTRACT, Kind.INTERVAL, Kind.INTERVAL): Kind.INTERVAL,
}
_SUMMED: Final = frozenset({Kind.NUMBER, Kind.INTERVAL})
_UNORDERED: Final = frozenset({Kind.BOOLEAN, Kind.NULL})


class Evaluator:
    """Makes conditions over rows whose columns are of these kinds."""

    def __init__(self, kinds: Sequence[Kind], slots: Sequence[Slot]) -> None:
        self._kinds, self._slots = kinds, slots

    def condition(self, variable: str, term: Term) -> Condition:
        """Return the condition; raises CONFIG for types that do not fit each other."""
        try:
            evaluate = self._boolean(term)
        except _UnfitError as error:
            what = f"the condition of {variable} is refused: {error}"
            raise CdcError(ErrorKind.CONFIG, what, remedy=_CAST) from None
        return lambda rows, at, state: evaluate(rows, at, state) is True

    def _boolean(self, term: Term) -> Evaluated:
        kind, evaluate = self._made(term)
        if kind not in {Kind.BOOLEAN, Kind.NULL}:
            raise _UnfitError(f"it is {kind}, and no boolean")
        return evaluate

    def _made(self, term: Term) -> tuple[Kind, Evaluated]:
        match term:
            case Constant(value):
                return _kind_of(value), lambda _rows, _at, _state: value
            case Here(column, back):
                return self._kinds[column], _here(column, back)
            case There(slot, column, back):
                return self._kinds[column], _there(slot, column, back)
            case Total(slot):
                return self._total(self._slots[slot]), lambda _rows, _at, state: state[slot]
            case Computed(operation, of):
                made = [self._made(each) for each in of]
                kinds, parts = [kind for kind, _ in made], [part for _, part in made]
                return _result(operation, kinds), _computed(operation, parts)

    def _total(self, slot: Slot) -> Kind:
        if slot.seen is Seen.COUNT or slot.column is None:
            return Kind.NUMBER
        kind = self._kinds[slot.column]
        if (slot.seen is Seen.SUM and kind not in _SUMMED) or kind in _UNORDERED:
            raise _UnfitError(f"it has {slot.seen} of {kind}")
        return kind


def _kind_of(value: Value | None) -> Kind:
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.BOOLEAN
        case str():
            return Kind.TEXT
        case _:
            return Kind.NUMBER


def _here(column: int, back: int) -> Evaluated:
    return lambda rows, at, _: rows[at - back][column] if at >= back else None


def _there(slot: int, column: int, back: int) -> Evaluated:
    def evaluate(rows: Sequence[Row], _: int, state: State) -> Value | None:
        position = state[slot]
        if not isinstance(position, int) or position < back:
            return None
        return rows[position - back][column]

    return evaluate


def _result(operation: Operation, kinds: Sequence[Kind]) -> Kind:
    """Return the kind of an operation's result; raises CONFIG for operands that do not fit."""
    match operation:
        case Operation.AND | Operation.OR | Operation.NOT | Operation.IS_TRUE | Operation.IS_FALSE:
            _same(operation, [*kinds, Kind.BOOLEAN])
        case Operation.IS_NULL:
            pass
        case Operation.COALESCE:
            return _same(operation, kinds)
        case Operation.CASE:
            _same(operation, [*kinds[:-1:2], Kind.BOOLEAN])
            return _same(operation, [*kinds[1::2], kinds[-1]])
        case Operation.ADD | Operation.SUBTRACT | Operation.MULTIPLY:
            return _arithmetic(operation, kinds)
        case _:
            _same(operation, [Kind.TIME if kind is Kind.DATE else kind for kind in kinds])
    return Kind.BOOLEAN


def _same(operation: Operation, kinds: Sequence[Kind]) -> Kind:
    """Return the one kind of the operands that are not NULL."""
    found = [kind for kind in dict.fromkeys(kinds) if kind is not Kind.NULL]
    if len(found) > 1:
        raise _UnfitError(f"{operation.upper()} has {found[0]} and {found[1]}")
    return found[0] if found else Kind.NULL


def _arithmetic(operation: Operation, kinds: Sequence[Kind]) -> Kind:
    if Kind.NULL in kinds:
        return Kind.NULL
    one, other = kinds
    if (operation, one, other) not in _RESULTS:
        raise _UnfitError(f"{operation} has {one} and {other}")
    return _RESULTS[operation, one, other]


def _computed(operation: Operation, parts: Sequence[Evaluated]) -> Evaluated:
    if operation in _ABSORBING:
        return _absorbed(parts, absorbing=_ABSORBING[operation])
    compute = _FUNCTIONS.get(operation)
    if compute is not None:
        return lambda rows, at, state: compute([part(rows, at, state) for part in parts])
    one, other = parts
    if operation in _COUNTED:
        return _strict(one, other, _COUNTED[operation])
    holds = _COMPARED[operation]
    return _strict(one, other, lambda a, b: holds(compare(a, b)))


def _strict(
    one: Evaluated, other: Evaluated, combine: Callable[[Value, Value], Value]
) -> Evaluated:
    """Return NULL where a side is NULL."""

    def evaluate(rows: Sequence[Row], at: int, state: State) -> Value | None:
        left = one(rows, at, state)
        right = None if left is None else other(rows, at, state)
        return None if left is None or right is None else combine(left, right)

    return evaluate


def _absorbed(parts: Sequence[Evaluated], *, absorbing: bool) -> Evaluated:
    """Return AND, which one false part decides, or OR, which a true one does."""

    def evaluate(rows: Sequence[Row], at: int, state: State) -> Value | None:
        found: bool | None = not absorbing
        for part in parts:
            value = part(rows, at, state)
            if value is absorbing:
                return absorbing
            if value is None:
                found = None
        return found

    return evaluate


_ABSORBING: Final = {Operation.AND: False, Operation.OR: True}
_Values = Sequence[Value | None]


def _in(values: _Values) -> bool | None:
    sought, *others = values
    if sought is None:
        return None
    if any(value is not None and compare(sought, value) == 0 for value in others):
        return True
    return None if None in others else False


def _distinct(values: _Values) -> bool:
    one, other = values
    if one is None or other is None:
        return one is not other
    return compare(one, other) != 0


def _case(values: _Values) -> Value | None:
    taken = [value for when, value in zip(values[:-1:2], values[1::2], strict=True) if when is True]
    return taken[0] if taken else values[-1]


_FUNCTIONS: Final[dict[Operation, Callable[[_Values], Value | None]]] = {
    Operation.NOT: lambda values: None if values[0] is None else not values[0],
    Operation.DISTINCT: _distinct,
    Operation.SAME: lambda values: not _distinct(values),
    Operation.IS_NULL: lambda values: values[0] is None,
    Operation.IS_TRUE: lambda values: values[0] is True,
    Operation.IS_FALSE: lambda values: values[0] is False,
    Operation.IN: _in,
    Operation.COALESCE: lambda values: next((each for each in values if each is not None), None),
    Operation.CASE: _case,
}
