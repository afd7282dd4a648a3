"""Ways to rewrite all rows of a table that Spark takes too: one column filled or cast, new hashes.

Only what means the same to Spark is done here. For any other value or type TakeMergeError is
raised, before anything is written.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc.events.schema import Column, TableSchema
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH
from cdc.lake.table.plain_values import plain_values
from cdc.lake.table.row_hash import has_floats, row_digest

_INTEGERS: Final = ("smallint", "int", "bigint")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?(\+00)?")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_DOUBLE: Final = re.compile(r"-?\d+(\.\d+)?(e[-+]\d+)?|NaN|-?Infinity")
_TRUE: Final = ("t", "true")


@dataclass(frozen=True, slots=True)
class Filled:
    """Gives every row one value in the column; ``text`` is the value as Postgres writes it."""

    column: Column
    text: str

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the value."""
        place = rows.schema.get_field_index(self.column.name)
        field = rows.schema.field(place)
        try:
            value = pa.scalar(_value(self.text, self.column.type), field.type)
        except (pa.ArrowException, ValueError, ArithmeticError) as error:
            raise TakeMergeError(f"it gets a value that only Spark casts: {error}") from None
        return rows.set_column(place, field, pa.repeat(value, rows.num_rows))


@dataclass(frozen=True, slots=True)
class Cast:
    """The column's values become those of a wider type."""

    column: Column
    arrow: pa.DataType  # the same type

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the cast values."""
        place = rows.schema.get_field_index(self.column.name)
        values = rows.column(place)
        if not _is_exact(values.type, self.arrow):
            raise TakeMergeError(f"only Spark casts {values.type} to {self.arrow}")
        try:
            cast = pc.cast(values, self.arrow)
        except pa.ArrowException as error:
            raise TakeMergeError(f"it has a value that is not exact: {error}") from None
        return rows.set_column(place, pa.field(self.column.name, self.arrow), cast)


@dataclass(frozen=True, slots=True)
class Rehashed:
    """Rows of a table without a key get hashes and copy numbers for its columns of now."""

    schema: TableSchema

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the rows with their hashes and numbers."""
        if has_floats(self.schema):
            raise TakeMergeError("it has floats, whose digests only Spark can make")
        if set(rows.column_names) != {*self.schema.names, OFFSET, ROW_HASH, COPY}:
            raise TakeMergeError("it has other columns than those of its rows")
        rows = rows.sort_by(OFFSET)
        columns = [plain_values(rows[name]) for name in self.schema.names]
        hashes = list(map(row_digest(self.schema), zip(*columns, strict=True)))
        own = {ROW_HASH: hashes, COPY: list(_numbered(hashes))}
        for name, values in own.items():
            place = rows.schema.get_field_index(name)
            field = rows.schema.field(place)
            rows = rows.set_column(place, field, pa.array(values, field.type))
        return rows


Rewriting = Filled | Cast | Rehashed


def _numbered(hashes: list[str]) -> Any:  # noqa: ANN401 - an iterator of integers
    seen = Counter[str]()
    for one in hashes:
        seen[one] += 1
        yield seen[one]


def _value(text: str, kind: str) -> Any:  # noqa: ANN401 - of the type
    """Return the value of Postgres's text; raises ValueError for what is not read here."""
    if kind in _INTEGERS:
        return int(text)
    if kind.startswith("decimal"):
        return Decimal(text)
    if (read := _READ.get(kind)) is None:
        raise ValueError(kind)
    return read(text)


def _double(text: str) -> float:
    if not _DOUBLE.fullmatch(text):
        raise ValueError("a double")
    return float(text)


def _date(text: str) -> date:
    if not _DATE.fullmatch(text):
        raise ValueError("a date")
    return date.fromisoformat(text)


def _moment(text: str) -> datetime:
    """Return the moment, without a zone; Postgres's texts of timestamps with one are in UTC."""
    if not _MOMENT.fullmatch(text):
        raise ValueError("a timestamp")
    return datetime.fromisoformat(text.removesuffix("+00"))


def _instant(text: str) -> datetime:
    if not text.endswith("+00"):
        raise ValueError("an instant")
    return _moment(text).replace(tzinfo=UTC)


_READ: Final[dict[str, Callable[[str], Any]]] = {
    "string": str,
    "boolean": lambda text: text in _TRUE,
    "binary": lambda text: bytes.fromhex(text.removeprefix("\\x")),
    "double": _double,
    "date": _date,
    "timestamp_ntz": _moment,
    "timestamp": _instant,
}


def _is_exact(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether Arrow casts every value as Spark does, or refuses it."""
    of = pa.types
    if of.is_integer(old):
        return bool(of.is_integer(new) or of.is_decimal(new) or of.is_string(new))
    if of.is_decimal(old):
        return bool(of.is_decimal(new) and new.scale >= old.scale)
    if of.is_float32(old):
        return bool(of.is_float64(new))
    return bool(of.is_date32(old) and of.is_timestamp(new) and new.tz is None)
