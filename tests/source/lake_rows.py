"""Model the lake's rows, and the effect of each structure step on them, in plain Python."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from cdc.events.structure.steps import (
    AddColumn,
    ChangeKey,
    ChangeMode,
    DropColumn,
    RenameColumn,
    RenameTable,
    Step,
    WidenColumn,
)


@dataclass
class LakeRows:
    """Holds rows by column name, and the lake's types of the columns."""

    rows: list[dict[str, Any]]
    types: dict[str, str]

    def do(self, step: Step) -> None:
        """Apply a step to columns and rows."""
        match step:
            case RenameColumn(old, new):
                self._add(new, self.types.pop(old), lambda row: row.pop(old))
            case DropColumn(name):
                del self.types[name]
                for row in self.rows:
                    del row[name]
            case AddColumn(column, text):
                self._add(column.name, column.type, lambda _: lake_value(text, column.type))
            case WidenColumn(name, kind):
                old = self.types.pop(name)
                self._add(name, kind, lambda row: cast_value(row[name], old, kind))
            case _:
                assert isinstance(step, ChangeKey | ChangeMode | RenameTable)

    def _add(self, name: str, kind: str, value: Callable[[dict[str, Any]], Any]) -> None:
        assert name.lower() not in {known.lower() for known in self.types}
        self.types[name] = kind
        for row in self.rows:
            row[name] = value(row)


def _single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


_READ: Final[dict[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("smallint", "int", "bigint"), int),
    "boolean": {"true": True, "false": False, "t": True, "f": False}.__getitem__,
    "float": lambda text: _single(float(text)),
    "double": float,
    "date": date.fromisoformat,
    "timestamp_ntz": datetime.fromisoformat,
}
_CAST: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("smallint", "int", "bigint"), int),
    "float": lambda value: _single(float(value)),
    "double": float,
    "string": lambda value: str(value).lower(),
    "timestamp_ntz": lambda value: datetime(value.year, value.month, value.day),  # noqa: DTZ001
}


def lake_value(text: str | None, kind: str) -> Any:  # noqa: ANN401 - of any type
    """Return the lake's value for Postgres's text of it."""
    if text is None:
        return None
    if kind.startswith("array<"):
        parts = text.strip("{}").split(",") if text != "{}" else []
        return [None if p == "NULL" else lake_value(p.strip('"'), _inner(kind)) for p in parts]
    if kind.startswith("decimal"):
        return _decimal(Decimal(text), kind)
    return _READ.get(kind, str)(text)


def cast_value(value: Any, old: str, new: str) -> Any:  # noqa: ANN401 - of any type
    """Return the value cast as a query engine would do it."""
    if value is None:
        return None
    if new.startswith("array<"):
        return [cast_value(each, _inner(old), _inner(new)) for each in value]
    if new.startswith("decimal"):
        return _decimal(Decimal(value), new)
    return _CAST[new](value)


def _inner(kind: str) -> str:
    return kind.removeprefix("array<").removesuffix(">")


def _decimal(value: Decimal, kind: str) -> Decimal:
    precision, scale = (int(number) for number in kind[8:-1].split(","))
    assert value.adjusted() < precision - scale or not value
    return value.quantize(Decimal(1).scaleb(-scale))
