"""What a table is rebuilt from: put together from the lake's log, or from Kafka's topics alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.structure_notes import PlacedNote, first_notes, note_rows, read_notes
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.kafka.offsets import end_offsets
from cdc.lake.layout import log_path
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Reading
from cdc.lake.table import store
from cdc.lake.table.positions import NOTHING, UNREAD, landed_position
from cdc.operations.desk.context import Kept
from cdc.operations.replay import kafka_history
from cdc.operations.replay.kafka_history import FROM_LOG, History
from cdc.operations.replay.rebuild import READ_ANEW, Material, Point, Tell, rebuilt
from cdc.tables import STRUCTURE, TableId, matches

_LOOKS: Final = 50
"""How often two ends of topics are looked for that are of one moment."""
_KEPT_NOTES: Final = 4096
"""So many notes the source keeps at least; older ones may be compacted away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Up to where: of a cut, or of the end of the topics."""

    epoch: int
    upto: int  # offset of the table's topic
    notes: int  # offset of the topic of changed structures
    cut: int | None = None
    snapshot_end: int | None = 0  # as the cut says


def place_of(row: LedgerRow, table: TableId) -> Place:
    """Where the table is at a cut; raises CONFIG for one that the cut does not have."""
    entry = row.entry(str(table))
    if entry is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"cut {row.cut} has no table {table}",
            remedy="wal2lake status lists the tables; name an earlier or a later cut",
        )
    if entry.reading == UNREAD:
        raise CdcError(ErrorKind.TABLE_STOPPED, f"{table} has not been read yet", remedy=READ_ANEW)
    return Place(
        epoch=row.epoch,
        upto=entry.offset,
        notes=row.notes_offset,
        cut=row.cut,
        # A ledger of an earlier version does not say.
        snapshot_end=0 if row.snapshot_end is None else row.snapshot_end,
    )


def from_log(
    kept: Kept,
    table: TableId,
    place: Place,
    *,
    readings: Sequence[Reading],
    known: TableSchema | None,
) -> Material:
    """``known`` are columns and key of the lake's table, where it has one."""
    path, topic = log_path(kept.config), table.topic(kept.config.name)
    log, landed = store.read_pinned(kept.session, path), landed_position(path)
    notes_topic = STRUCTURE.topic(kept.config.name)
    notes = note_rows(log, path, notes_topic).where(F.col("offset") <= place.notes)
    first = log.agg(F.min("landing")).collect()[0][0] or 1
    expired, _ = landed.expired.get(topic, NOTHING) if landed else NOTHING
    return _material(
        kept,
        table,
        log.where(F.col("topic") == topic),
        read_notes(notes, kept.schemas_of),
        marker="log",
        first_landing=max(first, expired + 1),
        snapshot_end=place.snapshot_end,
        readings=readings,
        known=known,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FromKafka:
    """The topics of a table, taken aside, and up to where they are used."""

    material: Material
    history: History
    place: Place


def from_kafka(
    kept: Kept,
    bootstrap: str,
    table: TableId,
    place: Place | None,
    *,
    folder: str,
    readings: Sequence[Reading],
    known: TableSchema | None,
) -> FromKafka:
    """From the topics alone, taken aside into ``folder``; without a place, up to their end.

    Raises CHAIN_BROKEN where retention or compaction has removed what is needed. Images are passed
    over: they are of the log.
    """
    readings = [reading for reading in readings if not reading.image]
    topic, notes_topic = table.topic(kept.config.name), STRUCTURE.topic(kept.config.name)
    place = place or newest_place(bootstrap, topic, notes_topic)
    found = _taken(kept, bootstrap, topic, f"{folder}/events", place.upto)
    _refuse_readings(found, table, readings)
    noted = _taken(kept, bootstrap, notes_topic, f"{folder}/notes", None)
    material = _material(
        kept,
        table,
        found.rows,
        read_notes(noted.rows.where(F.col("offset") <= place.notes), kept.schemas_of),
        marker="kafka",
        first_landing=1,
        readings=readings,
        known=known,
    )
    _refuse_late(material, table)
    return FromKafka(material=material, history=found, place=place)


def _taken(kept: Kept, bootstrap: str, topic: str, folder: str, upto: int | None) -> History:
    span = kept.config.job.max_events_per_batch
    found = kafka_history.take(kept.session, bootstrap, topic, folder, upto=upto, span=span)
    kafka_history.check(found, kept.schemas_of, kept.placeholder)
    return found


def newest_place(bootstrap: str, topic: str, notes_topic: str) -> Place:
    """The ends of two topics at one moment, in the first epoch."""
    for _ in range(_LOOKS):
        before = end_offsets(bootstrap, [topic, notes_topic])
        after = end_offsets(bootstrap, [topic])
        if before.get(topic) == after.get(topic):
            ends = {name: before.get(name, 0) - 1 for name in (topic, notes_topic)}
            return Place(epoch=1, upto=ends[topic], notes=ends[notes_topic])
    raise CdcError(
        ErrorKind.CONFLICT,
        f"topic {topic} grows too fast for its end to be of one moment",
        remedy=f"name a cut with --to, or {FROM_LOG}",
    )


def rebuilt_from_kafka(
    kept: Kept, source: FromKafka, table: TableId, path: str, *, point: Point, tell: Tell
) -> AppliedTable:
    """The table; raises CHAIN_BROKEN where compaction may have left something else than it was."""
    compacted, place = source.history.facts.compacted, source.place
    begin = partial(rebuilt, upto=place.upto, epoch=place.epoch, point=point, tell=tell)
    try:
        made = begin(kept.session, source.material, table, path)
    except CdcError as error:
        if compacted and error.kind is ErrorKind.TABLE_STOPPED:
            raise CdcError(ErrorKind.CHAIN_BROKEN, error.message, remedy=FROM_LOG) from None
        raise
    if compacted and made.position.refused:
        raise _refused(kept.quarantine, source.history.topic, table)
    return made


def _refused(quarantine: Quarantine, topic: str, table: TableId) -> CdcError:
    """Of a compacted topic: the older state that its row had is gone."""
    events = quarantine.rows(str(table), with_values=False)
    first = min(events, key=lambda event: event.offset)
    return CdcError(
        ErrorKind.CHAIN_BROKEN,
        f"topic {topic} is compacted, and {len(events)} of its events cannot be applied alone",
        detail=f"the first at offset {first.offset}: {first.reason}",
        remedy=FROM_LOG,
    )


def _refuse_readings(found: History, table: TableId, readings: Sequence[Reading]) -> None:
    if readings and found.facts.compacted:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"{table} was read again, and what was read is not in topic {found.topic}",
            detail=f"reading {readings[-1].number}, by operation {readings[-1].operation}",
            remedy=f"{FROM_LOG}; or {READ_ANEW}",
        )


def _refuse_late(material: Material, table: TableId) -> None:
    """Rows of before a table was captured are in no event, old notes are forgotten."""
    begins = material.begins
    newest = max((note.id for note in material.notes), default=0)
    if begins is None or (begins.lsn is None and newest - begins.id <= _KEPT_NOTES):
        return
    late = f"{table} was captured after the first snapshot: its rows of before are not in Kafka"
    pruned = f"changes of the structure of {table} may be missing in Kafka"
    if begins.lsn is None or not any(reading.whole for reading in material.readings):
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            pruned if begins.lsn is None else late,
            detail=f"the table begins with note {begins.id}, and the newest is {newest}",
            remedy=FROM_LOG,
        )


def _material(
    kept: Kept,
    table: TableId,
    rows: DataFrame,
    notes: list[PlacedNote],
    **more: object,
) -> Material:
    source = kept.config.source
    return Material(
        rows=rows,
        topic=table.topic(kept.config.name),
        notes=notes,
        schemas_of=kept.schemas_of,
        begins=_begins(notes, table),
        budget=kept.config.job.max_events_per_batch,
        placeholder=kept.placeholder,
        quarantine=kept.quarantine,
        policy=kept.config.job,
        changes=source.schema_policy(table),
        as_text=source.as_text,
        append=matches(table, source.append_only),
        **more,  # type: ignore[arg-type]
    )


def _begins(notes: Sequence[PlacedNote], table: TableId) -> PlacedNote | None:
    """The note that the table's log begins with; of two tables of that name the newer one's."""
    mine = [note for note in first_notes(notes).values() if note.table == table]
    return max(mine, key=lambda note: note.id, default=None)
