"""Compare one table of the source with the lake: choose the columns and render a verdict."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from cdc.client.verify.compare import Comparison, compare
from cdc.client.verify.lake_rows import LakeTable
from cdc.client.verify.render import PLAIN, Rendering, masked_by, rendering
from cdc.client.verify.source_rows import rows as source_rows
from cdc.lake.records.ledger import TableEntry
from cdc.source.catalog.catalog import SourceTable
from cdc.source.server.connection import Connection
from cdc.tables import BEING_READ, TableMode, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNote:
    """Names a column that the lake, by declaration, does not keep completely, and the reason."""

    column: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVerdict:
    """Gives the result of comparing one table."""

    table: str
    comparison: Comparison
    state: str
    reason: str
    key: tuple[str, ...]
    lacking: tuple[str, ...] = ()  # columns that should be in the lake, but are not
    left_out: tuple[str, ...] = ()  # columns that, by declaration, do not arrive: not compared
    notes: tuple[ColumnNote, ...] = ()
    again_at: int | None = None
    """The cut of the verdict, if it is later than the report's."""

    @property
    def equal(self) -> bool:
        """Return whether all rows are equal and the lake has every column that it should."""
        return self.comparison.equal and not self.lacking

    @property
    def being_read(self) -> bool:
        """Return whether rows can differ because they are still being read from the source."""
        return self.state in BEING_READ and not self.equal


def compare_table(
    connection: Connection, table: SourceTable, entry: TableEntry | None, scratch: Path
) -> TableVerdict:
    """Compare the table, as the connection's transaction sees it, with the lake at the cut.

    ``entry`` is the table's entry in the ledger at the cut, if any; ``scratch`` is a directory for
    temporary files. A table that the source no longer has counts as empty there.
    """
    lake = LakeTable(entry)
    renderings = _renderings(table, lake)
    names = list(renderings)
    key = _key(table, names)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        comparison = compare(
            source_rows(connection, table.table, renderings) if table.oid else (),
            lake.rows(renderings),
            columns=names,
            key=key,
            buckets=lake.buckets(),
            scratch=Path(folder),
        )
    return TableVerdict(
        table=str(table.table),
        comparison=comparison,
        state=entry.state if entry else TableState.SNAPSHOTTING.value,
        reason=entry.reason if entry else "",
        key=tuple(names[position] for position in key),
        lacking=tuple(
            column.name
            for column in table.columns
            if column.arrives and lake.exists and column.name not in lake.types
        ),
        left_out=tuple(column.name for column in table.columns if column.name not in renderings),
        notes=tuple(_notes(table, lake, renderings)),
    )


def _renderings(table: SourceTable, lake: LakeTable) -> dict[str, Rendering]:
    """Return the renderings of the columns that both sides have, in the source's order.

    A table that is not in the lake has no types there: all its rows, if any, count as missing.
    """
    if not table.oid:
        return {name: rendering("", kind) for name, kind in lake.types.items()}
    if not lake.exists:
        return {c.name: masked_by(PLAIN, c.mask) for c in table.columns if c.arrives}
    return {
        column.name: masked_by(rendering(column.pg.name, lake.types[column.name]), column.mask)
        for column in table.columns
        if column.name in lake.types
    }


def _key(table: SourceTable, names: list[str]) -> list[int]:
    """Return the positions of the key's columns; an empty list for a table without a key."""
    if table.mode is not TableMode.KEYED or not set(table.key) <= set(names):
        return []
    return [names.index(name) for name in table.key]


def _notes(
    table: SourceTable, lake: LakeTable, renderings: dict[str, Rendering]
) -> list[ColumnNote]:
    notes = [
        ColumnNote(column=name, reason=each.note) for name, each in renderings.items() if each.note
    ]
    notes += [
        ColumnNote(column=column.name, reason=column.reason)
        for column in table.columns
        if not column.arrives and column.name not in renderings
    ]
    if table.mode is TableMode.APPEND:
        notes.append(
            ColumnNote(column="*", reason="append-only: updates and deletes are not followed")
        )
    gone = sorted(lake.types.keys() - {column.name for column in table.columns})
    return notes + [ColumnNote(column=name, reason="only in the lake") for name in gone]
