"""What was read from the source besides the stream: the part of a table's history not in the log.

A whole reading is the table as it was at one cut: a rebuild from the log begins with the newest.
A difference is what a reading changed in a table that stood at the same cut: a rebuild merges it
when it is at that offset. Without them the log could not give the table again.

An image is no reading of the source: it is a rebuild, kept whole, so that the log before it can be
given up (cdc/lake/records/expiry.py).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa
from deltalake import QueryBuilder, write_deltalake

from cdc.events.values.sql_text import fusion_string
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table.positions import LOST, Position, open_table
from cdc.lake.upkeep.control_tables import optimize

SCHEMA: Final = pa.schema(
    [
        ("number", pa.int64()),
        ("table", pa.string()),
        ("whole", pa.bool_()),
        ("path", pa.string()),
        ("version", pa.int64()),
        ("position", pa.string()),
        ("lsn", pa.int64()),
        ("cut", pa.int64()),
        ("landing", pa.int64()),
        ("operation", pa.string()),
        ("made_at", pa.timestamp("us", "UTC")),
        ("image", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """``path`` at ``version`` holds the table whole, or the rows that were merged into it."""

    number: int  # over all tables, 1 for the first
    table: str  # schema.name
    whole: bool
    path: str
    version: int
    position: Position  # of the table when the reading is in it
    lsn: int  # the source was read at this position
    cut: int  # the cut that ends there
    landing: int  # every landing up to here lies before the reading
    operation: str
    made_at: datetime
    image: bool = False  # made of the log, by a rebuild


class Readings:
    """The index of readings, a Delta table; written by the job alone."""

    def __init__(self, path: str) -> None:
        self.path = path

    def next_number(self) -> int:
        return max((reading.number for reading in self.rows()), default=0) + 1

    def add(self, reading: Reading) -> None:
        """Before the commit that brings the reading into its table: it is harmless without it."""
        row = {**asdict(reading), "position": json.dumps(asdict(reading.position))}
        source = pa.Table.from_pylist([row], schema=SCHEMA)
        # An index of an earlier version has fewer columns.
        write_deltalake(self.path, source, mode="append", schema_mode="merge")
        if (table := open_table(self.path)) is not None:
            optimize(table)

    def of(self, table: str) -> list[Reading]:
        """Those of one table (``schema.name``), the oldest first."""
        return [reading for reading in self.rows() if reading.table == table]

    def rows(self) -> list[Reading]:
        """All, by number."""
        table = open_table(self.path)
        if table is None:
            return []
        query = "SELECT * FROM r ORDER BY number"
        found = pa.table(QueryBuilder().register("r", table).execute(query).read_all())
        return [_reading(row) for row in found.to_pylist()]

    def forget(self, table: str, *, before: int | None = None) -> None:
        """Take those of a table out of the index, or the ones with a lower number only.

        Their files are the caller's matter.
        """
        if (opened := open_table(self.path)) is not None:
            older = "" if before is None else f" AND number < {before:d}"
            opened.delete(f'"table" = {fusion_string(table)}{older}')


def base_of(readings: Sequence[Reading], upto: int, epoch: int) -> list[Reading]:
    """What a rebuild up to an offset of an epoch begins with: the newest whole one, and the rest.

    The rest are differences in their order, each merged when the table is at its offset. Without a
    whole one the rebuild begins with nothing, and with all differences.
    """
    within = [r for r in readings if (r.position.epoch, r.position.offset) <= (epoch, upto)]
    begin = max((i for i, reading in enumerate(within) if reading.whole), default=0)
    return within[begin:]


def readings_at(readings: Iterable[Reading], row: LedgerRow, table: str) -> list[Reading]:
    """Those that were in the table when the cut was published; all where its files were lost then.

    One that did not come into the table does no harm: it says what was true at its place. An image
    is what the table was.
    """
    entry = row.entry(table)
    if entry is not None and entry.reading == LOST:
        return list(readings)
    newest = entry.reading if entry else 0
    return [r for r in readings if (r.cut <= row.cut if r.image else r.number <= newest)]


def _reading(row: dict[str, object]) -> Reading:
    position = Position(**json.loads(str(row["position"])))
    image = bool(row.get("image"))
    return Reading(**{**row, "position": position, "image": image})  # type: ignore[arg-type]
