"""Check single expressions: the forms of allowed nodes that mean the same in every engine."""

import re
from typing import Final

from sqlglot import exp

from cdc.derive.sql import refused
from cdc.derive.sql.problem import Check, Complaint
from cdc.derive.sql.text import forms
from cdc.derive.sql.text.forms import whole_number

LARGEST_PRECISION: Final = 38
TYPES: Final = frozenset(
    {
        exp.DType.SMALLINT,
        exp.DType.INT,
        exp.DType.BIGINT,
        exp.DType.DECIMAL,
        exp.DType.DOUBLE,
        exp.DType.TEXT,
        exp.DType.DATE,
        exp.DType.TIMESTAMP,
        exp.DType.TIMESTAMPTZ,
        exp.DType.BOOLEAN,
    }
)
_TYPE_NAMES: Final = (
    "use smallint, integer, bigint, numeric(p, s), double precision, text, date, timestamp, "
    "timestamptz or boolean"
)
_TRUNCATED: Final = frozenset(
    {"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"}
)
_EXTRACTED: Final = _TRUNCATED | {"EPOCH", "ISOYEAR", "DOY", "DOW", "ISODOW"}
_UNITS: Final = re.compile(r"(DAY|HOUR|MINUTE|SECOND)S?")
_ZONE: Final = re.compile(r"UTC|[A-Z][A-Za-z_]+(/[A-Z][A-Za-z_-]+)+")
_WHOLE: Final = re.compile(r"\d+")


def complaint(node: exp.Expr) -> Complaint | None:
    """Return what is wrong with the form of an allowed node."""
    check = _CHECKS.get(type(node))
    return None if check is None else check(node)


def is_double(node: exp.Expr) -> bool:
    """Return whether the text shows that the value is double precision."""
    if isinstance(node, exp.Paren | exp.Neg | exp.Nullif):
        return is_double(node.this)
    return isinstance(node, exp.Cast) and node.to.this == exp.DType.DOUBLE


def _number(node: exp.Expr) -> Complaint | None:
    text = str(node.this)
    if node.is_string:
        return ("a text has a zero byte", "remove it") if "\0" in text else None
    if re.fullmatch(r"\d+|\d+\.\d+", text):
        if len(text.replace(".", "")) <= LARGEST_PRECISION:
            return None
        return f"{text} has more than 38 digits", "use double precision"
    if isinstance(node.parent, exp.Cast) and is_double(node.parent):
        return None
    return f"{text} is numeric in Postgres and double precision elsewhere", (
        f"write {text}::double precision, or all of its digits"
    )


def _divide(node: exp.Expr) -> Complaint | None:
    if not (is_double(node.this) or is_double(node.expression)):
        return "/ without double precision is refused", refused.DIVIDE
    return _divisor(node)


def _divisor(node: exp.Expr) -> Complaint | None:
    """A division by 0 fails in Postgres, and is NULL or infinite in DuckDB."""
    if _not_zero(node.expression):
        return None
    return "the divisor may be 0", refused.ZERO


def _not_zero(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Cast | exp.Neg):
        node = node.this
    if isinstance(node, exp.Nullif):
        zero = node.expression
        return isinstance(zero, exp.Literal) and not zero.is_string and float(zero.this) == 0
    return isinstance(node, exp.Literal) and not node.is_string and float(node.this) != 0


def _interval(node: exp.Expr) -> Complaint | None:
    unit, amount = node.args.get("unit"), node.this
    whole = isinstance(amount, exp.Literal) and _WHOLE.fullmatch(str(amount.this))
    if whole and isinstance(unit, exp.Var) and _UNITS.fullmatch(str(unit.this).upper()):
        return None
    return "an interval of this form is refused", (
        "write a whole number of days, hours, minutes or seconds, and add several; use date_trunc "
        "for months"
    )


def _cast(node: exp.Expr) -> Complaint | None:
    to = node.args["to"]
    if not isinstance(to, exp.DataType) or to.this not in TYPES or to.args.get("nested"):
        return f"the type {to.sql('postgres').lower()} is refused", _TYPE_NAMES
    sizes = [str(size.this) for size in to.expressions]
    if to.this != exp.DType.DECIMAL:
        return (f"{to.sql('postgres').lower()} has a size", _TYPE_NAMES) if sizes else None
    if not sizes:
        return "numeric without precision is refused", "write numeric(p, s), with p up to 38"
    numbers = [int(size) if _WHOLE.fullmatch(size) else -1 for size in sizes]
    precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if 0 < precision <= LARGEST_PRECISION and 0 <= scale <= precision:
        return None
    return f"numeric({', '.join(sizes)}) is refused", "the precision is 1 to 38, the scale below it"


def _zone(node: exp.Expr) -> Complaint | None:
    zone = node.args["zone"]
    if isinstance(zone, exp.Literal) and zone.is_string and _ZONE.fullmatch(str(zone.this)):
        return None
    return "this time zone is refused", "write the name of a region, as 'Europe/Berlin', or 'UTC'"


def _round(node: exp.Expr) -> Complaint | None:
    if whole_number(node.args.get("decimals"), 0):
        return None
    return "round needs a number of digits", "write round(a::numeric(p, s), 0), digits from 0"


def _trunc(node: exp.Expr) -> Complaint | None:
    if str(node.args["unit"].name).upper() in _TRUNCATED:
        return None
    return "date_trunc does not know this unit", f"use {', '.join(sorted(_TRUNCATED)).lower()}"


def _extract(node: exp.Expr) -> Complaint | None:
    if str(node.this.name).upper() in _EXTRACTED:
        return None
    return f"extract({str(node.this.name).lower()} ...) is refused", (
        f"use {', '.join(sorted(_EXTRACTED)).lower()}"
    )


def _average(node: exp.Expr) -> Complaint | None:
    return None if is_double(node.this) else ("avg is refused here", refused.AVERAGE)


def _star(node: exp.Expr) -> Complaint | None:
    if isinstance(node.parent, exp.Count):
        return None
    return "* is refused here", refused.STAR


def _distinct(node: exp.Expr) -> Complaint | None:
    """DISTINCT in an aggregate is the same as in a query; several expressions are a row."""
    if isinstance(node.parent, exp.Select) and not node.expressions:
        return None
    if isinstance(node.parent, exp.Count | exp.Sum | exp.Min | exp.Max) and (
        len(node.expressions) == 1
    ):
        return None
    return "this form of DISTINCT is refused", "write SELECT DISTINCT, or count(DISTINCT a)"


def _is(node: exp.Expr) -> Complaint | None:
    if isinstance(node.expression, exp.Null | exp.Boolean):
        return None
    return "this form of IS is refused", "write IS NULL, IS TRUE or IS DISTINCT FROM"


def _quantity(node: exp.Expr) -> Complaint | None:
    offset = node.args.get("offset")
    if offset is None or whole_number(offset, 0):
        return None
    return f"{node.key} needs a constant distance", f"write {node.key}(a, 1)"


def _filter(node: exp.Expr) -> Complaint | None:
    if isinstance(node.expression, exp.Where):
        return None
    return "this form of FILTER is refused", "write FILTER (WHERE ...)"


_CHECKS: Final[dict[type[exp.Expr], Check]] = {
    **forms.CHECKS,
    exp.Literal: _number,
    exp.Div: _divide,
    exp.Mod: _divisor,
    exp.Interval: _interval,
    exp.Cast: _cast,
    exp.AtTimeZone: _zone,
    exp.Round: _round,
    exp.TimestampTrunc: _trunc,
    exp.Extract: _extract,
    exp.Avg: _average,
    exp.Star: _star,
    exp.Distinct: _distinct,
    exp.Is: _is,
    exp.Lag: _quantity,
    exp.Lead: _quantity,
    exp.Filter: _filter,
}
