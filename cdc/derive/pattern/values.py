"""Compare and combine values of rows as Postgres does. NULL is handled by the callers.

Whole numbers and decimals are exact. Where one side is double precision, both are. NaN equals
itself and is greater than every other number. Text is compared by code points, which is the order
of its bytes in UTF-8. Times and intervals are microseconds.
"""

from collections.abc import Callable
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from math import isnan
from typing import Any, Final

Value = bool | int | Decimal | float | str
"""A value of a row that is not NULL."""
_EXACT: Final = Context(prec=2000, traps=[Inexact, InvalidOperation, Overflow, DivisionByZero])


def compare(one: Value, other: Value) -> int:
    """Return -1, 0 or 1 for smaller, equal and greater; the values are of comparable types."""
    if isinstance(one, float) or isinstance(other, float):
        return _compare_doubles(_double(one), _double(other))
    left: Any = one
    right: Any = other
    return int(left > right) - int(left < right)


def add(one: Value, other: Value) -> Value:
    """Return the sum of two numbers."""
    return _combined(one, other, lambda a, b: a + b, _EXACT.add)


def subtract(one: Value, other: Value) -> Value:
    """Return the difference of two numbers."""
    return _combined(one, other, lambda a, b: a - b, _EXACT.subtract)


def multiply(one: Value, other: Value) -> Value:
    """Return the product of two numbers."""
    return _combined(one, other, lambda a, b: a * b, _EXACT.multiply)


def _combined(
    one: Value,
    other: Value,
    plainly: Callable[[float, float], float],
    exactly: Callable[[Decimal, Decimal], Decimal],
) -> Value:
    if isinstance(one, float) or isinstance(other, float):
        return plainly(_double(one), _double(other))
    if isinstance(one, int) and isinstance(other, int):
        return plainly(one, other)
    return exactly(Decimal(one), Decimal(other))


def _double(value: Value) -> float:
    return value if isinstance(value, float) else float(Decimal(value))


def _compare_doubles(one: float, other: float) -> int:
    if isnan(one) or isnan(other):
        return isnan(one) - isnan(other)
    return (one > other) - (one < other)
