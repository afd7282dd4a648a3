"""Reads notes of changed structures from the log, and places them among a table's events.

A note is a row of ``wal2lake.structure`` in the source, so it arrives in a topic of its own. The
source's LSN orders it against the table's events: while the structure changes, nobody else writes
to the table (docs/decisions/0011).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from deltalake import QueryBuilder
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import decode_envelope
from cdc.errors import CdcError
from cdc.events import avro
from cdc.events.structure.steps import Note
from cdc.events.structure.structure import parse, unpublished_from
from cdc.events.values.sql_text import fusion_string
from cdc.kafka.registry_client import SchemaLookup
from cdc.lake.files.delta import delta_table
from cdc.lake.table.positions import landed_position
from cdc.source.notes.structure_table import BASELINE, UNNOTED
from cdc.tables import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedNote:
    """Places a note of one table in the source's WAL."""

    id: int
    oid: int
    table: TableId
    lsn: int | None  # None for a note that a snapshot read: it is older than every event
    note: Note | None  # None where the source could not describe the table
    baseline: bool = False  # whether it says what the table begins with


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundNote:
    """Places a note of one table among the table's events."""

    id: int
    after: int  # offset of the table's last event before the change
    note: Note | None
    lsn: int | None = None

    def rewrites_before(self, end: int | None) -> bool:
        """Return whether the table was rewritten before a place in the WAL; None: anywhere."""
        inside = self.lsn is not None and (end is None or self.lsn <= end)
        return inside and self.note is not None and self.note.rewrite != 0


def note_rows(log: DataFrame, path: str, topic: str) -> DataFrame:
    """Return rows of the notes' topic; only files of the log that may hold some are opened.

    ``log`` is a version of the log at ``path`` that was opened before this call.
    """
    landed = landed_position(path)
    ranges = landed.noted if landed else ()
    some = [F.col("landing").between(first, last) for first, last in ranges]
    return log.where((F.col("topic") == topic) & reduce(or_, some, F.lit(False)))  # noqa: FBT003


def notes_in_log(
    path: str, topic: str, schemas_of: SchemaLookup, *, after: int = -1, upto: int | None = None
) -> list[PlacedNote]:
    """Return the notes that have landed in the log at ``path``, in the order of their ids.

    ``after`` and ``upto`` limit their offsets. Spark is not asked: its first job takes seconds,
    and a start of the job would wait for it.
    """
    landed = landed_position(path)
    ranges = landed.noted if landed else ()
    if not ranges:
        return []
    some = " OR ".join(f"landing BETWEEN {first:d} AND {last:d}" for first, last in ranges)
    limit = "" if upto is None else f' AND "offset" <= {upto:d}'
    found = (
        QueryBuilder()
        .register("log", delta_table(path))
        .execute(
            "SELECT value, value_schema_id FROM log "  # noqa: S608 - quoted
            f'WHERE topic = {fusion_string(topic)} AND ({some}) AND "offset" > {after:d}{limit}'
        )
    )
    records = pa.table(found.read_all()).to_pylist()
    ids = {record["value_schema_id"] for record in records} - {None}
    return notes_of(records, schemas_of(ids))


def placed_notes(rows: DataFrame, schemas: Mapping[int, str]) -> list[PlacedNote]:
    """Return the notes in rows of the log, in the order of their ids; one Spark job."""
    return notes_of(rows.select("value", "value_schema_id").collect(), schemas)


def notes_of(records: Iterable[Any], schemas: Mapping[int, str]) -> list[PlacedNote]:
    """Return the notes in records of the log, in the order of their ids.

    Other records are passed over: tombstones, deletes of pruned notes, records of strangers.
    """
    notes = []
    for record in records:
        schema = schemas.get(record["value_schema_id"])
        frame = avro.frame(bytes(record["value"])) if record["value"] is not None else None
        if schema is not None and frame is not None:
            event = avro.decode(schema, frame.body)
            if event.get("op") in {"c", "r"}:
                notes.append(_placed(event))
    return sorted(notes, key=lambda note: note.id)


def read_notes(rows: DataFrame, schemas_of: SchemaLookup) -> list[PlacedNote]:
    """Return the notes in rows of the log, in the order of their ids; two Spark jobs."""
    ids = (row[0] for row in rows.select("value_schema_id").distinct().collect())
    return placed_notes(rows, schemas_of(number for number in ids if number is not None))


def _placed(event: Mapping[str, Any]) -> PlacedNote:
    row = event["after"]
    return PlacedNote(
        id=row["id"],
        oid=row["table_oid"],
        table=TableId(row["table_schema"] or "", row["table_name"] or ""),
        lsn=event["source"]["lsn"] if event["op"] == "c" else None,
        note=_note(row, pipeline=event["source"]["name"]),
        baseline=row["command"] == BASELINE,
    )


def _note(row: Mapping[str, Any], *, pipeline: str) -> Note | None:
    """Return the note; None where the source could not describe the table.

    ``pipeline`` names the publication that counts: a source may have others.
    """
    text = row["structure"]
    try:
        structure = None if text is None else parse(text)
    except CdcError:
        return None
    return Note(
        structure=structure,
        rewrite=row["rewrite"],
        converted=row["converted"],
        unpublished=text is not None and unpublished_from(text) == pipeline,
        unnoted=row["command"] == UNNOTED,
    )


def first_notes(notes: Sequence[PlacedNote]) -> dict[int, PlacedNote]:
    """Return, by OID, the note that a table's log begins with.

    A snapshot may read several notes of a table: the newest is the one written for the snapshot.
    """
    baselines = [note for note in notes if note.baseline and note.note is not None]
    first = {note.oid: note for note in baselines if note.lsn is None}
    for note in baselines:
        first.setdefault(note.oid, note)
    return first


def place_notes(
    notes: Sequence[PlacedNote], mine: DataFrame, schemas: Mapping[int, str], *, before: int
) -> list[BoundNote]:
    """Place the notes of one table among its rows of the log, ``mine``; one Spark job.

    ``before`` is the offset of the last event before these rows.
    """
    timed = {note.id: note.lsn for note in notes if note.lsn is not None}
    last: dict[str, int | None] = {}
    if timed:
        places = decode_envelope(mine.where(F.col("value").isNotNull()), schemas)
        ends = [
            F.max(F.when(F.col("lsn") < lsn, F.col("offset"))).alias(f"after_{number}")
            for number, lsn in timed.items()
        ]
        last = places.agg(*ends).collect()[0].asDict()
    placed = []
    for note in notes:
        # Never before an earlier note: the LSNs of two in one transaction are in order too.
        end = last.get(f"after_{note.id}")
        before = max(before, -1 if end is None else end)
        placed.append(BoundNote(id=note.id, after=before, note=note.note, lsn=note.lsn))
    return placed
