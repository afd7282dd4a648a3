"""Say which columns a history goes on with when its table has got others. Pure.

A history keeps the columns of its first step. Events say nothing of what a structure change did to
rows: only the table has that, and for its rows of now alone. So a history goes on beside columns
that were added, and stops where one of its own is not the one that it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.tables import TableId

_REMEDY = (
    "give the definition another name: the new history begins where the log allows it, and the old "
    "one stays as it is"
)


_WIDER: Final = frozenset(combinations(("SMALLINT", "INTEGER", "BIGINT"), 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnColumns:
    """Names the columns that a history has of its table, in order, and the key that it goes by."""

    names: Sequence[str]
    key: Sequence[str]
    numbers: Mapping[str, int]
    """Of the columns in the source, which never uses one again; empty where they are not known."""

    def facts(self) -> dict[str, Any]:
        """Return what a mark has of it; the names are those of the mark's columns."""
        return {"key": list(self.key), "numbers": dict(self.numbers)}

    @classmethod
    def of(cls, schema: TableSchema, numbers: Mapping[str, int]) -> "OwnColumns":
        """Return all columns of a table."""
        known = {name: numbers[name] for name in schema.names if name in numbers}
        return cls(names=schema.names, key=schema.key, numbers=known)

    @classmethod
    def recorded(cls, names: Sequence[str], facts: Mapping[str, Any]) -> "OwnColumns":
        """Return those of a history that has these columns and these facts in its mark."""
        return cls(names=names, key=facts.get("key", ()), numbers=facts.get("numbers", {}))

    def within(self, now: TableSchema, numbers: Mapping[str, int], *, more: bool) -> TableSchema:
        """Return the table's schema with these columns alone; ``numbers`` are those of now.

        Raises TABLE_STOPPED if one of them is gone or another one, if the key is another, and,
        unless there may be ``more``, if the table has others too.
        """
        here = {column.name: column for column in now.columns}
        for name in self.names:
            known = name in self.numbers and bool(numbers)
            if name not in here or (known and name not in numbers):
                raise _stopped(now, f"has no column {name} any more, which its history has")
            if known and numbers[name] != self.numbers[name]:
                raise _stopped(now, f"has another column {name} than its history")
        if self.key and tuple(self.key) != tuple(now.key):
            keys = " and ".join(f"({', '.join(key)})" for key in (now.key, self.key))
            raise _stopped(now, f"has another key than its history: {keys}")
        added = [name for name in here if name not in self.names]
        if added and not more:
            raise _stopped(now, f"has a column {added[0]}, which its history has not")
        return replace(now, columns=tuple(here[name] for name in self.names))


def refuse_retyped(
    definition: TableId,
    schema: TableSchema,
    types: tuple[Mapping[str, str], Mapping[str, str]],
    *,
    anew: bool,
) -> None:
    """Raise TABLE_STOPPED if a column had another of DuckDB's ``types`` than it has now.

    A history that is made ``anew`` has wider integers: those of its events fit.
    """
    old, new = types
    others = [(name, old[name], kind) for name, kind in new.items() if old[name] != kind]
    fits = all((before, now) in _WIDER for _, before, now in others)
    if others and not (anew and fits):
        name, before, now = others[0]
        remedy = f"make it anew: wal2lake derived rebuild {definition}" if fits else _REMEDY
        raise _stopped(schema, f"has {name} as {now}, and its history as {before}", remedy)


def _stopped(schema: TableSchema, what: str, remedy: str = _REMEDY) -> CdcError:
    return CdcError(ErrorKind.TABLE_STOPPED, f"{schema.table} {what}", remedy=remedy)
