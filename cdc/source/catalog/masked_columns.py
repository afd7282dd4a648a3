"""Apply ``source.columns``: columns to be left out, hashed or truncated."""

from collections.abc import Collection, Iterator, Mapping

from cdc.config.masks import Masks, maskable
from cdc.events.structure.declared import SourceColumn
from cdc.source.server.finding import Finding
from cdc.tables import TableId, names_column

Columns = Mapping[TableId, tuple[SourceColumn, ...]]
_REMEDY = "correct the pattern in source.columns"


def with_masks(tables: Columns, masks: Masks) -> Columns:
    """Return the columns with their masks; those that never arrive need none."""
    return {
        table: tuple(
            column.masked_by(masks.of(table, column.name)) if column.arrives else column
            for column in columns
        )
        for table, columns in tables.items()
    }


def unmatched_masks(tables: Columns, masks: Masks) -> list[Finding]:
    """Return a warning for each pattern that matches no captured column."""
    every = [(table, column.name) for table, columns in tables.items() for column in columns]
    return [
        Finding.warning(
            pattern,
            "this pattern in source.columns matches no captured column",
            remedy="correct or remove it; names are case-sensitive",
        )
        for pattern, _ in masks.by_pattern
        if not any(names_column(table, name, [pattern]) for table, name in every)
    ]


def mask_findings(
    subject: str, columns: tuple[SourceColumn, ...], identity: Collection[str]
) -> Iterator[Finding]:
    """Refuse the mask of a column that identifies rows, or whose type has no such mask.

    ``identity`` are the columns of the key and of the replica identity's index.
    """
    for column in columns:
        name, mask = f"{subject}.{column.name}", column.mask.partition(" ")[0]
        if mask and column.name in identity:
            yield Finding.error(
                name, f"is part of the key, and source.columns says {mask}", remedy=_REMEDY
            )
        elif not maskable(column.mask, column.pg.name):
            yield Finding.error(
                name,
                f"is of type {column.pg.name}, and source.columns says {mask}: only text, varchar, "
                "char and citext can be hashed or truncated",
                remedy=f"{_REMEDY}, or drop the column there",
            )
