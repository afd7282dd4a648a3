"""Give a structure the masks of ``source.columns``, of which the source's notes know nothing."""

from dataclasses import replace

from cdc.config.masks import DROP, Masks
from cdc.events.schema import TableSchema
from cdc.events.structure.structure import Structure, StructureColumn


def masked(structure: Structure, masks: Masks) -> Structure:
    """Return the structure, as the source describes it, with the masks that its columns have."""
    columns = (
        _masked(column, masks.of(structure.table, column.name), masks) if column.arrives else column
        for column in structure.columns
    )
    return replace(structure, columns=tuple(columns))


def _masked(column: StructureColumn, mask: str, masks: Masks) -> StructureColumn:
    if not mask:
        return column
    missing = masks.masked(mask, column.missing)
    return replace(column, mask=mask, missing=missing, arrives=mask != DROP)


def masked_otherwise(schema: TableSchema, structure: Structure | None, masks: Masks) -> str | None:
    """Return why the lake's rows are not masked like new changes are; None if they are.

    A column that was renamed since is judged by the note of that (column_steps.py).
    """
    columns = {c.name: c for c in structure.columns if c.arrives or c.mask} if structure else {}
    for name in columns or schema.names:
        was, now = columns[name].mask if columns else "", masks.of(schema.table, name)
        if was != now:
            return (
                f"source.columns has changed for column {name}: the lake's rows are masked by"
                f" {was or 'nothing'}, and new changes by {now or 'nothing'}"
            )
    return None
