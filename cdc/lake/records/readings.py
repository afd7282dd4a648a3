"""Keeps the index of readings: the part of a table's history that is not in the log.

A whole reading is the table as it was at one cut: a rebuild from the log begins with the newest.
A difference is what a reading changed in a table that was at the same cut: a rebuild merges it
when it reaches that offset. Without them a table could not be restored from the log.

An image was not read from the source: it is a rebuild of the table, kept whole, so that the log
before it can expire (cdc/lake/records/expiry.py).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa
from deltalake import QueryBuilder, write_deltalake

from cdc.events.values.sql_text import fusion_string
from cdc.lake.files.delta import storage_options
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table.known_commit import known_commit
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
    """Describes a reading: ``path`` at ``version`` is the whole table or the rows merged in."""

    number: int  # counted over all tables, 1 for the first
    table: str  # schema.name
    whole: bool
    path: str
    version: int
    position: Position  # of the table once it contains the reading
    lsn: int  # LSN at which the source was read
    cut: int  # number of the cut that ends there
    landing: int  # every landing up to this number lies before the reading
    operation: str
    made_at: datetime
    image: bool = False  # rebuilt from the log, not read from the source


class Readings:
    """Keeps the index of readings, a Delta table that the job alone writes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def next_number(self) -> int:
        """Return the number for the next reading."""
        return max((reading.number for reading in self.rows()), default=0) + 1

    def add(self, reading: Reading) -> None:
        """Add a reading to the index.

        Called before the commit that brings the reading into its table: an entry without that
        commit does no harm.
        """
        row = {**asdict(reading), "position": json.dumps(asdict(reading.position))}
        source = pa.Table.from_pylist([row], schema=SCHEMA)
        # An index of an earlier version has fewer columns.
        with known_commit(self.path) as known:
            write_deltalake(
                self.path,
                source,
                mode="append",
                schema_mode="merge",
                commit_properties=known,
                storage_options=storage_options(self.path),
            )
        if (table := open_table(self.path)) is not None:
            optimize(self.path, table)

    def of(self, table: str) -> list[Reading]:
        """Return the readings of one table (``schema.name``), oldest first."""
        return [reading for reading in self.rows() if reading.table == table]

    def rows(self) -> list[Reading]:
        """Return all readings, ordered by number."""
        table = open_table(self.path)
        if table is None:
            return []
        query = "SELECT * FROM r ORDER BY number"
        result = pa.table(QueryBuilder().register("r", table).execute(query).read_all())
        return [_reading(row) for row in result.to_pylist()]

    def forget(self, table: str, *, before: int | None = None) -> None:
        """Remove a table's readings from the index: all, or those with a number below ``before``.

        The caller removes their files.
        """
        if (opened := open_table(self.path)) is not None:
            older = "" if before is None else f" AND number < {before:d}"
            with known_commit(self.path) as known:
                opened.delete(f'"table" = {fusion_string(table)}{older}', commit_properties=known)


def base_of(readings: Sequence[Reading], upto: int, epoch: int) -> list[Reading]:
    """Return the readings of a table that a rebuild up to offset ``upto`` of an epoch needs.

    The first is the newest whole reading. The rest are differences in order; each is merged when
    the table reaches its offset. Without a whole reading the rebuild begins with an empty table,
    and all readings returned are differences.
    """
    within = [r for r in readings if (r.position.epoch, r.position.offset) <= (epoch, upto)]
    begin = max((i for i, reading in enumerate(within) if reading.whole), default=0)
    return within[begin:]


def readings_at(readings: Iterable[Reading], row: LedgerRow, table: str) -> list[Reading]:
    """Return the readings that were in the table when the cut was published.

    If the table's files were lost at that time, all readings are returned. A reading that did not
    make it into the table does no harm, because it states what was true at its position. An image
    equals the table, so its cut decides.
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
