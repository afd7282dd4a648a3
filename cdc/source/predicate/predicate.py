"""Compile the predicate of ``resnapshot --where`` for Postgres and for Spark.

Rows of the lake that match it and that the source does not have are swept, so it must mean the same
in both engines, also for NULL. Nothing that the user typed reaches either engine: only constructs
known to mean the same are accepted, and they are spelled again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.declared import SourceColumn
from cdc.source.predicate.parse import PredicateError, parse_condition
from cdc.source.predicate.tree_reader import TreeReader
from cdc.tables import TableId

_INTEGERS: Final = frozenset({"smallint", "int", "bigint"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """States a condition on the rows of a table, with the same meaning in both engines.

    ``source`` and ``lake`` go into statements without parameters: a ``%`` in them is not escaped.
    """

    table: TableId
    source: str  # for Postgres, over the table's columns
    lake: str  # for Spark, over the columns of the lake's table
    text: str  # as a user would write it
    types: Mapping[str, str]  # the lake's types of the columns it names
    collated: frozenset[str]  # columns whose collation must be deterministic

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns in the predicate."""
        return tuple(self.types)


def parse(
    text: str, table: TableId, columns: Sequence[SourceColumn], *, enums: Collection[str] = ()
) -> Predicate:
    """Compile the text of a predicate over a table's columns.

    ``enums`` names the columns of an enum type, which ``columns`` does not show. Raises CONFIG
    naming the part, and its place, that is not understood or may differ between the engines.
    """
    reader = TreeReader(table, columns, frozenset(enums))
    try:
        condition = reader.condition(parse_condition(text))
    except PredicateError as error:
        raise error.as_error(text) from None
    except RecursionError:
        raise PredicateError("is nested too deeply").as_error(text) from None
    return Predicate(
        table=table,
        source=condition.source,
        lake=condition.lake,
        text=condition.text,
        types=reader.types,
        collated=frozenset(reader.collated),
    )


def refuse_unlike(predicate: Predicate, lake: Mapping[str, str]) -> None:
    """Raise CONFIG if a column of the predicate is missing in the lake, or has another type.

    ``lake`` maps the columns of the lake's table to their types in Spark's DDL. Integer types may
    differ in size.
    """
    for name, kind in predicate.types.items():
        actual = lake.get(name)
        if actual == kind or {actual, kind} <= _INTEGERS:
            continue
        has = "does not have it" if actual is None else f"has it as {actual}, not as {kind}"
        raise CdcError(
            ErrorKind.CONFIG,
            f"the predicate names column {name}, but the lake's table of {predicate.table} {has}",
            remedy="use other columns, or resnapshot the whole table",
        )
