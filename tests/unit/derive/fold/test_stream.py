"""The state and the faults of streams, from what apply does with each event."""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from enum import StrEnum
from typing import Any, Final

import pytest

from cdc.derive.fold.program import Apply, program
from cdc.derive.fold.stream import MOST_BYTES, Event, Fault, Folded, Kind, Rules, fold_streams
from cdc.derive.fold.values import Column, Type, UnfitError, type_of
from tests.unit.derive.fold.bank import fold

NOON: Final = datetime(2024, 1, 31, 12)  # noqa: DTZ001 - a timestamp has no zone


class Colour(StrEnum):
    RED = "red"


def kind(text: str) -> Type:
    found = type_of(text)
    assert found is not None
    return found


def folded(apply: Callable[..., object], *versions: int | None, of: str = "bigint") -> Folded:
    """Return what one stream gives, whose state has one column ``n`` of a type."""
    rules = Rules(apply=apply, columns=[Column("n", kind(of))], first=1)
    (found,) = fold_streams([Event(1, ("s",), each, {"v": each}) for each in versions], rules)
    return found


def applied(text: str) -> Apply:
    """Return ``apply`` of a file with these lines; ``n`` is the column of its state."""
    header = 'table = {"events": "s.e", "stream": "a", "version": "v", "columns": {"n": "text"}}\n'
    states, _ = fold(header + text)
    assert states.fold is not None
    return program(states.fold.code)


def number(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    return {"n": event["v"] + (state or {"n": 0})["n"] * 10}


@pytest.mark.parametrize(
    ("versions", "state", "faults"),
    [
        ((1, 2, 3), 123, []),
        ((1, 2, 2, 4), 12, [(2, "double", "2 events have this version"),
                            (3, "gap", "version 3 is missing")]),
        ((2, 3), None, [(1, "gap", "version 1 is missing")]),
        ((1, 5, 7, 7, 7), 1, [(2, "gap", "versions 2 to 4 are missing"),
                              (6, "gap", "version 6 is missing"),
                              (7, "double", "3 events have this version")]),
        ((0, 0, 1, 2), None, [(0, "before first", "the first version is 1"),
                              (0, "double", "2 events have this version")]),
        ((1, 2, None, None), 12, [(None, "no version", "2 events have no version")]),
        ((None,), None, [(None, "no version", "1 event has no version")]),
    ],
)  # fmt: skip
def test_versions_are_counted(
    versions: tuple[int, ...], state: int | None, faults: list[tuple[Any, ...]]
) -> None:
    found = folded(number, *versions)

    assert found.state == (None if state is None else {"n": state})
    assert [tuple(fault) for fault in found.faults] == faults
    assert found.version == (None if state is None else state % 10)


def test_a_state_that_was_changed_in_place_is_not_kept_after_a_refusal() -> None:
    apply = applied("""
def apply(state, event):
    state = state or {"n": "0"}
    state["n"] += "1"
    if event["v"] == 2:
        raise Refused("no " + state["n"])
    return state
""")

    found = folded(apply, 1, 2, 3, of="text")

    assert (found.version, found.state) == (1, {"n": "01"})
    assert found.faults == [Fault(2, Kind.REFUSED, "no 011")]


@pytest.mark.parametrize(
    ("body", "fault", "detail"),
    [
        ("raise Refused", "refused", ""),
        ("raise Refused(7)", "refused", "7"),
        ('raise Refused("\\0\\ud800" + "x" * 2000)', "refused", "??" + "x" * 998),
        ('return {"n": event["secret"]}', "error", "KeyError"),
        ("return 1 / 0", "error", "ZeroDivisionError"),
        ('assert event is None, "secret"', "error", "AssertionError"),
        ("yield 1", "value", "apply returned a value of Python's generator"),
        ('return ["n"]', "value", "apply returned a value of Python's list"),
        ("return {}", "value", "n is missing"),
        ('return {"n": "a", "m": "a"}', "value", "there are more columns than declared"),
        ('return {"n": 1}', "value", "n: a value of Python's int is no text"),
        ('return {"n": "é" * 500_001}', "too large", "its texts have more than 1,000,000 bytes"),
        ('LIST.append(1)\n    return {"n": "a"}', "error", "AttributeError"),
        ('DICT["a"] = 1\n    return {"n": "a"}', "error", "TypeError"),
        ("from math import nothing", "error", "ImportError"),
    ],
)
def test_what_apply_does_wrong_is_a_fault_without_values(
    body: str, fault: str, detail: str
) -> None:
    apply = applied(f"LIST = []\nDICT = {{}}\ndef apply(state, event):\n    {body}\n")

    found = folded(apply, 1, of="text")

    assert found.faults == [Fault(1, Kind(fault), detail)]
    assert found.state is None


def test_a_state_may_be_as_large_as_is_said() -> None:
    found = folded(lambda *_: {"n": "x" * MOST_BYTES}, 1, of="text")

    assert found.faults == []


def test_decimals_are_exact_whatever_the_program_around_has_set() -> None:
    apply = applied("""
def apply(state, event):
    from decimal import Decimal
    return {"n": Decimal(10 ** 37) + Decimal("0.1") * event["v"]}
""")

    with localcontext() as context:
        context.prec = 5
        found = folded(apply, 1, of="numeric(38,0)")
        exact = folded(apply, 1, 2, 3, 4, 5, 6, 7, 8, 9, of="numeric(38,0)")

    assert found.faults == exact.faults
    assert (
        found.faults[0].detail == "n: a number has more digits after the point than numeric(38,0)"
    )


def test_a_fault_of_one_stream_leaves_the_others() -> None:
    rules = Rules(apply=number, columns=[Column("n", kind("bigint"))], first=1)
    events = [Event(1, (None, 1), 1, {}), Event(1, (None, 1), 1, {})]
    events += [Event(i, (i, 1), version, {"v": version}) for i in (2, 3) for version in (i - 1, 2)]

    found = list(fold_streams(events, rules))

    assert [(each.names, each.state) for each in found] == [
        ((None, 1), None), ((2, 1), {"n": 12}), ((3, 1), None),
    ]  # fmt: skip
    assert found[0].faults == [Fault(None, Kind.NO_VERSION, "2 events have no stream")]
    assert [fault.kind for fault in found[2].faults] == [Kind.GAP, Kind.DOUBLE]


EXACT: Final = [
    ("bigint", 2**63 - 1, 2**63 - 1),
    ("bigint", -(2**63), -(2**63)),
    ("integer", -(2**31), -(2**31)),
    ("numeric(4,2)", Decimal("-99.99"), Decimal("-99.99")),
    ("numeric(4,2)", Decimal("1.500"), Decimal("1.50")),
    ("numeric(4,2)", Decimal("9E+1"), Decimal("90.00")),
    ("numeric(4,2)", 99, Decimal("99.00")),
    ("numeric(4,2)", Decimal("-0"), Decimal("0.00")),
    ("numeric(38,0)", 10**38 - 1, Decimal(10**38 - 1)),
    ("numeric(3,3)", Decimal("0.999"), Decimal("0.999")),
    ("double precision", -0.5, -0.5),
    ("double precision", math.inf, math.inf),
    ("text", "é\U0001f600", "é\U0001f600"),
    ("text", Colour.RED, "red"),
    ("boolean", False, False),
    ("date", date(1, 1, 1), date(1, 1, 1)),
    ("timestamp", NOON.replace(fold=1), NOON),
    ("timestamptz", NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC)),
    (
        "timestamptz",
        NOON.replace(tzinfo=timezone(timedelta(hours=1))),
        datetime(2024, 1, 31, 11, tzinfo=UTC),
    ),
    ("text", None, None),
]
UNFIT: Final = [
    ("bigint", 2**63, "a number is out of the range of bigint"),
    ("bigint", -(2**63) - 1, "a number is out of the range of bigint"),
    ("integer", 2**31, "a number is out of the range of integer"),
    ("integer", True, "a value of Python's bool is no integer"),
    ("integer", Decimal(1), "a value of Python's Decimal is no integer"),
    ("numeric(4,2)", 0.5, "a value of Python's float is no numeric(4,2)"),
    ("numeric(4,2)", True, "a value of Python's bool is no numeric(4,2)"),
    ("numeric(4,2)", Decimal("0.001"), "a number has more digits after the point than"),
    ("numeric(4,2)", Decimal("1E-999999"), "a number has more digits after the point than"),
    ("numeric(4,2)", Decimal(100), "a number is out of the range of numeric(4,2)"),
    ("numeric(4,2)", Decimal("1E+999999"), "a number is out of the range of numeric(4,2)"),
    ("numeric(38,0)", 10**38, "a number is out of the range of numeric(38,0)"),
    ("numeric(4,2)", Decimal("NaN"), "numeric(4,2) has no NaN and no infinity"),
    ("numeric(4,2)", Decimal("sNaN"), "numeric(4,2) has no NaN and no infinity"),
    ("double precision", 1, "a value of Python's int is no double precision"),
    ("text", "a\0", "a text has a zero byte or half a character"),
    ("text", "\ud83d", "a text has a zero byte or half a character"),
    ("text", b"a", "a value of Python's bytes is no text"),
    ("boolean", 1, "a value of Python's int is no boolean"),
    ("date", NOON, "a value of Python's datetime is no date"),
    ("timestamp", date(1, 1, 1), "a value of Python's date is no timestamp"),
    ("timestamp", NOON.replace(tzinfo=UTC), "a timestamp has a time zone: use timestamptz"),
    ("timestamptz", NOON, "a timestamptz has no time zone: use timestamp"),
    (
        "timestamptz",
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        "a time is out of the range of timestamptz",
    ),
]


@pytest.mark.parametrize(("name", "value", "expected"), EXACT)
def test_a_value_is_kept_exactly(name: str, value: object, expected: object) -> None:
    found = kind(name).fitted(value)

    assert (found, type(found), str(found)) == (expected, type(expected), str(expected))


@pytest.mark.parametrize(("name", "value", "message"), UNFIT)
def test_a_value_that_does_not_fit_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(UnfitError) as error:
        kind(name).fitted(value)

    assert str(error.value).startswith(message)
