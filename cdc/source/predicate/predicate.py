"""The predicate of ``resnapshot --where``: read, checked, and made anew for Postgres and for Spark.

Rows of the lake inside it that the source does not have are swept, so it must mean the same in
both engines, NULL included. Nothing that was typed reaches either of them: only what is known to
mean the same is read, and it is spelled anew.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.declared import SourceColumn
from cdc.source.predicate.parse import PredicateError, parsed
from cdc.source.predicate.reader import Reader
from cdc.tables import TableId

_INTEGERS: Final = frozenset({"smallint", "int", "bigint"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """Rows of a table, told in the same way to both engines.

    ``source`` and ``lake`` stand in a statement without parameters: a ``%`` in them is a ``%``.
    """

    table: TableId
    source: str  # for Postgres, over the table's columns
    lake: str  # for Spark, over those of the lake's table
    text: str  # as an operator would write it
    types: Mapping[str, str]  # of the columns it names, in the lake
    collated: frozenset[str]  # columns whose collation must be deterministic

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.types)


def parse(
    text: str, table: TableId, columns: Sequence[SourceColumn], *, enums: Collection[str] = ()
) -> Predicate:
    """The predicate; ``enums`` names columns of an enum type, which the types alone do not tell.

    Raises CONFIG naming what is not understood or not the same in both engines, with its place.
    """
    reader = Reader(table, columns, frozenset(enums))
    try:
        found = reader.condition(parsed(text))
    except PredicateError as error:
        raise error.told(text) from None
    except RecursionError:
        raise PredicateError("is nested too deeply").told(text) from None
    return Predicate(
        table=table,
        source=found.source,
        lake=found.lake,
        text=found.text,
        types=reader.types,
        collated=frozenset(reader.collated),
    )


def refuse_unlike(predicate: Predicate, lake: Mapping[str, str]) -> None:
    """Raises CONFIG where the lake's table has a column otherwise, or not at all.

    ``lake`` has its columns with their types, as Spark's DDL has them.
    """
    for name, kind in predicate.types.items():
        found = lake.get(name)
        if found == kind or {found, kind} <= _INTEGERS:
            continue
        has = "does not have it" if found is None else f"has it as {found} and not as {kind}"
        raise CdcError(
            ErrorKind.CONFIG,
            f"the predicate names column {name}, and the lake's table of {predicate.table} {has}",
            remedy="name other columns, or read the whole table",
        )
