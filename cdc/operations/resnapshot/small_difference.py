"""Finds how rows read from the source differ from the lake's, for tables that fit into memory.

``cdc.apply.difference.row_difference`` does the same in Spark: who changes one changes the other.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from cdc.apply.difference.row_difference import ADDED, CHANGED, KIND, SWEPT
from cdc.apply.local.change import Key
from cdc.apply.local.identity import key_of
from cdc.apply.local.not_local import NotLocalError
from cdc.apply.local.places import identity
from cdc.events.schema import TableSchema
from cdc.lake.table.merge_plan import DELETED, OFFSET, stored_columns
from cdc.lake.table.plain_values import plain_values
from cdc.tables import TableMode

Values = tuple[Any, ...]
_FLOATS: Final = ("float", "double")


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallDifference:
    """Lists rows of the reading (``added``, ``changed``) and of the lake (``replaced``, ``swept``).

    All are numbers of rows; ``replaced`` are those in whose place the changed ones come.
    """

    added: list[int]
    changed: list[int]
    replaced: list[int]
    swept: list[int]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of rows of each kind; kinds without rows are left out."""
        found = {ADDED: self.added, CHANGED: self.changed, SWEPT: self.swept}
        return {kind: len(rows) for kind, rows in found.items() if rows}


def small_difference(
    read: pa.Table, held: pa.Table, schema: TableSchema, among: frozenset[Key] | None = None
) -> SmallDifference:
    """Compare the rows of a reading with the lake's, value by value and bit by bit.

    ``read`` has the columns of the table and the numbers of equal rows, ``held`` all that the
    lake's table has. If the reading is of some keys, ``among`` has these. Raises NotLocalError
    where the lake's rows cannot be told apart, or the source has a key in another spelling.
    """
    wanted, there = _by_identity(read, schema), _by_identity(held, schema)
    if among is not None:
        if wanted.keys() - among:
            raise NotLocalError("the source spells a key in another way")
        there = {one: row for one, row in there.items() if one in among}
    both = [(wanted[one], there[one]) for one in wanted if one in there]
    unlike = _unlike(read, held, schema)
    changed = [(new, old) for new, old in both if unlike(new, old)]
    return SmallDifference(
        added=[row for one, row in wanted.items() if one not in there],
        changed=[new for new, _ in changed],
        replaced=[old for _, old in changed],
        swept=[row for one, row in there.items() if one not in wanted],
    )


def at_offset(read: pa.Table, schema: TableSchema, offset: int) -> pa.Table:
    """Return rows of a reading with all columns of the lake's table; each has this offset."""
    offsets = pa.repeat(pa.scalar(offset, pa.int64()), read.num_rows)
    return read.append_column(OFFSET, offsets).select(stored_columns(schema))


def kept_difference(
    read: pa.Table, held: pa.Table, schema: TableSchema, found: SmallDifference, offset: int
) -> pa.Table:
    """Return the difference as a rebuild merges it: whole rows, and which of them are deleted."""
    names = [name for name in stored_columns(schema) if name != OFFSET]
    parts = [
        _of_kind(rows.select(names).take(pa.array(numbers, pa.int64())), kind)
        for rows, numbers, kind in (
            (read, found.added, ADDED),
            (read, found.changed, CHANGED),
            (held, found.swept, SWEPT),
        )
    ]
    whole = pa.concat_tables([parts[0], *(part.cast(parts[0].schema) for part in parts[1:])])
    offsets = pa.repeat(pa.scalar(offset, pa.int64()), whole.num_rows)
    return whole.append_column(OFFSET, offsets)


def _of_kind(rows: pa.Table, kind: str) -> pa.Table:
    swept = pa.repeat(pa.scalar(kind == SWEPT), rows.num_rows)
    kinds = pa.repeat(pa.scalar(kind), rows.num_rows)
    return rows.append_column(DELETED, swept).append_column(KIND, kinds)


def _by_identity(rows: pa.Table, schema: TableSchema) -> dict[Values, int]:
    """Return the number of each row by what tells it from all others."""
    found = dict[Values, int]()
    for number, one in enumerate(_identities(rows, schema)):
        if one is None or found.setdefault(one, number) != number:
            raise NotLocalError("the lake has rows that cannot be told apart")
    return found


def _identities(rows: pa.Table, schema: TableSchema) -> Iterator[Values | None]:
    if schema.mode is TableMode.MULTISET:
        copies = [rows[name].to_pylist() for name in identity(schema)]
        yield from zip(*copies, strict=True)
        return
    yield from map(key_of(schema), zip(*_values(rows, schema.names), strict=True))


def _unlike(read: pa.Table, held: pa.Table, schema: TableSchema) -> Callable[[int, int], bool]:
    """Return the function that compares a row of the reading with one of the lake."""
    if schema.mode is TableMode.MULTISET:  # its identity is made of all its values
        return lambda _new, _old: False
    pairs = [
        (_exact(new, column.type), _exact(old, column.type))
        for column, new, old in zip(
            schema.columns,
            _values(read, schema.names),
            _values(held, schema.names),
            strict=True,
        )
    ]
    return lambda new, old: any(mine[new] != theirs[old] for mine, theirs in pairs)


def _values(rows: pa.Table, names: Sequence[str]) -> list[list[Any]]:
    return [plain_values(rows[name]) for name in names]


def _exact(values: list[Any], kind: str) -> list[Any]:
    """Return values that are equal only where all bits are: 0.0 and -0.0 differ, a NaN is one."""
    return list(map(repr, values)) if any(name in kind for name in _FLOATS) else values
