"""Notes of changed structures in the log, and between which events of a table each belongs.

A note is a row of ``wal2lake.structure`` in the source, so it comes by a topic of its own. What
orders it against the table's events is the source's lsn: while the structure changes, nobody else
writes the table (docs/decisions/0011).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import decode_envelope
from cdc.errors import CdcError
from cdc.events import avro
from cdc.events.structure.steps import Note
from cdc.events.structure.structure import parse, unpublished_from
from cdc.lake.table.positions import landed_position
from cdc.source.notes.sql import BASELINE, UNNOTED
from cdc.tables import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedNote:
    """``lsn`` is None for a note that a snapshot found: it is older than every event.

    ``note`` is None where the source could not describe the table. A ``baseline`` says what a
    table begins with.
    """

    id: int
    oid: int
    table: TableId
    lsn: int | None
    note: Note | None
    baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundNote:
    """``after`` is the offset of the last event of the table that comes before the change."""

    id: int
    after: int
    note: Note | None
    lsn: int | None = None

    def rewrites_before(self, end: int | None) -> bool:
        """Whether the rows got another file before the place in the WAL; None is behind all."""
        inside = self.lsn is not None and (end is None or self.lsn <= end)
        return inside and self.note is not None and self.note.rewrite != 0


def note_rows(log: DataFrame, path: str, topic: str) -> DataFrame:
    """Rows of the notes' topic: of the log's files only those are opened that may hold some.

    ``log`` is a version of the one at ``path`` that was opened before this is called.
    """
    landed = landed_position(path)
    ranges = landed.noted if landed else ()
    some = [F.col("landing").between(first, last) for first, last in ranges]
    return log.where((F.col("topic") == topic) & reduce(or_, some, F.lit(False)))  # noqa: FBT003


def read_notes(
    rows: DataFrame, schemas_of: Callable[[Iterable[int]], Mapping[int, str]]
) -> list[PlacedNote]:
    """Return ``placed_notes`` with the schemas that the rows name; two Spark jobs."""
    ids = [row[0] for row in rows.select("value_schema_id").distinct().collect()]
    return placed_notes(rows, schemas_of(number for number in ids if number is not None))


def placed_notes(rows: DataFrame, schemas: Mapping[int, str]) -> list[PlacedNote]:
    """From the topic's rows of the log, in the order of their ids; one Spark job.

    What is no note is passed over: tombstones, deletes of the pruned, records of strangers.
    """
    found = []
    for record in rows.select("value", "value_schema_id").collect():
        schema = schemas.get(record["value_schema_id"])
        frame = avro.frame(bytes(record["value"])) if record["value"] is not None else None
        if schema is not None and frame is not None:
            event = avro.decode(schema, frame.body)
            if event.get("op") in {"c", "r"}:
                found.append(_placed(event))
    return sorted(found, key=lambda note: note.id)


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
    """None where the source could not describe the table.

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
    """By OID, what a table begins with that is rebuilt from the log.

    A snapshot may find several: the newest is the one that was noted for it.
    """
    baselines = [note for note in notes if note.baseline and note.note is not None]
    found = {note.oid: note for note in baselines if note.lsn is None}
    for note in baselines:
        found.setdefault(note.oid, note)
    return found


def bound(
    notes: Sequence[PlacedNote], mine: DataFrame, schemas: Mapping[int, str], *, before: int
) -> list[BoundNote]:
    """Where the notes of one table belong among its rows of the log ``mine``.

    ``before`` is the offset of the last event before these rows. One Spark job.
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
    found = []
    for note in notes:
        # Never before an earlier note: of two in one transaction the lsns are in order too.
        end = last.get(f"after_{note.id}")
        before = max(before, -1 if end is None else end)
        found.append(BoundNote(id=note.id, after=before, note=note.note, lsn=note.lsn))
    return found
