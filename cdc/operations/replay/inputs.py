"""Gathers what a table is rebuilt from: out of the lake's log, or of Kafka's topics alone."""

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
from cdc.operations.desk.context import RebuildContext
from cdc.operations.replay import topic_copy
from cdc.operations.replay.rebuild import READ_ANEW, Material, Point, Tell, rebuild_table
from cdc.operations.replay.topic_copy import FROM_LOG, TopicCopy
from cdc.tables import STRUCTURE, TableId, matches

_LOOKS: Final = 50
"""How often to try to read the ends of two topics at the same moment."""
_KEPT_NOTES: Final = 4096
"""How many notes the source keeps at least; older ones may be compacted away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayEnd:
    """Where the rebuild of a table ends: at a cut, or at the end of the topics."""

    epoch: int
    upto: int  # offset in the table's topic
    notes: int  # offset in the topic of structure changes
    cut: int | None = None  # None: the end of the topics
    snapshot_end: int | None = 0  # as the cut's row has it


def end_at_cut(row: LedgerRow, table: TableId) -> ReplayEnd:
    """Return where the table is at a cut.

    Raises CONFIG for a table that the cut does not have, TABLE_STOPPED for one not read yet.
    """
    entry = row.entry(str(table))
    if entry is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"cut {row.cut} has no table {table}",
            remedy="wal2lake status lists the tables; name an earlier or a later cut",
        )
    if entry.reading == UNREAD:
        raise CdcError(ErrorKind.TABLE_STOPPED, f"{table} has not been read yet", remedy=READ_ANEW)
    return ReplayEnd(
        epoch=row.epoch,
        upto=entry.offset,
        notes=row.notes_offset,
        cut=row.cut,
        # The rows of earlier versions lack it.
        snapshot_end=0 if row.snapshot_end is None else row.snapshot_end,
    )


def from_log(
    context: RebuildContext,
    table: TableId,
    end: ReplayEnd,
    *,
    readings: Sequence[Reading],
    known: TableSchema | None,
) -> Material:
    """Return the material for a rebuild from the lake's log.

    ``known`` has columns and key of the lake's table, if there is one.
    """
    path, topic = log_path(context.config), table.topic(context.config.name)
    log, landed = store.read_pinned(context.session, path), landed_position(path)
    notes_topic = STRUCTURE.topic(context.config.name)
    notes = note_rows(log, path, notes_topic).where(F.col("offset") <= end.notes)
    first = log.agg(F.min("landing")).collect()[0][0] or 1
    expired, _ = landed.expired.get(topic, NOTHING) if landed else NOTHING
    return _material(
        context,
        table,
        log.where(F.col("topic") == topic),
        read_notes(notes, context.schemas_of),
        events_from="log",
        first_landing=max(first, expired + 1),
        snapshot_end=end.snapshot_end,
        readings=readings,
        known=known,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FromKafka:
    """Copies of a table's topics, and the end up to which they are used."""

    material: Material
    copied: TopicCopy
    end: ReplayEnd


def from_kafka(
    context: RebuildContext,
    bootstrap: str,
    table: TableId,
    end: ReplayEnd | None,
    *,
    folder: str,
    readings: Sequence[Reading],
    known: TableSchema | None,
) -> FromKafka:
    """Copy the topics into ``folder`` and return the material for a rebuild from them alone.

    Without an end they are used whole. Images are ignored, since they replace a part of the log.
    Raises CHAIN_BROKEN where retention or compaction has removed events that are needed.
    """
    readings = [reading for reading in readings if not reading.image]
    topic, notes_topic = table.topic(context.config.name), STRUCTURE.topic(context.config.name)
    end = end or end_of_topics(bootstrap, topic, notes_topic)
    events = _copied(context, bootstrap, topic, f"{folder}/events", end.upto)
    _refuse_readings(events, table, readings)
    notes = _copied(context, bootstrap, notes_topic, f"{folder}/notes", None)
    material = _material(
        context,
        table,
        events.rows,
        read_notes(notes.rows.where(F.col("offset") <= end.notes), context.schemas_of),
        events_from="kafka",
        first_landing=1,
        readings=readings,
        known=known,
    )
    _refuse_late(material, table)
    return FromKafka(material=material, copied=events, end=end)


def _copied(
    context: RebuildContext, bootstrap: str, topic: str, folder: str, upto: int | None
) -> TopicCopy:
    span = context.config.job.max_events_per_batch
    copied = topic_copy.copy_topic(context.session, bootstrap, topic, folder, upto=upto, span=span)
    topic_copy.check(copied, context.schemas_of, context.placeholder)
    return copied


def end_of_topics(bootstrap: str, topic: str, notes_topic: str) -> ReplayEnd:
    """Return the ends of the two topics at the same moment, in the first epoch.

    Raises CONFLICT where the topic grows too fast for that.
    """
    for _ in range(_LOOKS):
        before = end_offsets(bootstrap, [topic, notes_topic])
        after = end_offsets(bootstrap, [topic])
        if before.get(topic) == after.get(topic):
            ends = {name: before.get(name, 0) - 1 for name in (topic, notes_topic)}
            return ReplayEnd(epoch=1, upto=ends[topic], notes=ends[notes_topic])
    raise CdcError(
        ErrorKind.CONFLICT,
        f"topic {topic} grows too fast to find its end",
        remedy=f"name a cut with --to, or {FROM_LOG}",
    )


def rebuild_from_kafka(
    context: RebuildContext,
    source: FromKafka,
    table: TableId,
    path: str,
    *,
    point: Point,
    tell: Tell,
) -> AppliedTable:
    """Rebuild the table; raise CHAIN_BROKEN where compaction may have made it another table."""
    compacted, end = source.copied.facts.compacted, source.end
    rebuild = partial(rebuild_table, upto=end.upto, epoch=end.epoch, point=point, tell=tell)
    try:
        rebuilt = rebuild(context.session, source.material, table, path)
    except CdcError as error:
        if compacted and error.kind is ErrorKind.TABLE_STOPPED:
            raise CdcError(ErrorKind.CHAIN_BROKEN, error.message, remedy=FROM_LOG) from None
        raise
    if compacted and rebuilt.position.refused:
        raise _refused(context.quarantine, source.copied.topic, table)
    return rebuilt


def _refused(quarantine: Quarantine, topic: str, table: TableId) -> CdcError:
    """Return the error about refused events of a compacted topic, whose older events are gone."""
    events = quarantine.rows(str(table), with_values=False)
    first = min(events, key=lambda event: event.offset)
    return CdcError(
        ErrorKind.CHAIN_BROKEN,
        f"topic {topic} is compacted, and {len(events)} of its events cannot be applied alone",
        detail=f"the first at offset {first.offset}: {first.reason}",
        remedy=FROM_LOG,
    )


def _refuse_readings(copied: TopicCopy, table: TableId, readings: Sequence[Reading]) -> None:
    if readings and copied.facts.compacted:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"{table} was read again, and topic {copied.topic} lacks the rows of that reading",
            detail=f"reading {readings[-1].number}, by operation {readings[-1].operation}",
            remedy=f"{FROM_LOG}; or {READ_ANEW}",
        )


def _refuse_late(material: Material, table: TableId) -> None:
    """Raise CHAIN_BROKEN where events or notes may be missing from Kafka.

    No event has the rows that a table had before it was captured, and old notes are compacted.
    """
    begins = material.begins
    newest = max((note.id for note in material.notes), default=0)
    if begins is None or (begins.lsn is None and newest - begins.id <= _KEPT_NOTES):
        return
    late = f"{table} was captured after the first snapshot: its earlier rows are not in Kafka"
    pruned = f"structure changes of {table} may be missing in Kafka"
    if begins.lsn is None or not any(reading.whole for reading in material.readings):
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            pruned if begins.lsn is None else late,
            detail=f"the table begins with note {begins.id}, and the newest is {newest}",
            remedy=FROM_LOG,
        )


def _material(
    context: RebuildContext,
    table: TableId,
    rows: DataFrame,
    notes: list[PlacedNote],
    **more: object,
) -> Material:
    source = context.config.source
    return Material(
        rows=rows,
        topic=table.topic(context.config.name),
        notes=notes,
        schemas_of=context.schemas_of,
        begins=_begins(notes, table),
        budget=context.config.job.max_events_per_batch,
        placeholder=context.placeholder,
        quarantine=context.quarantine,
        policy=context.config.job,
        changes=source.schema_policy(table),
        as_text=source.as_text,
        append=matches(table, source.append_only),
        **more,  # type: ignore[arg-type]
    )


def _begins(notes: Sequence[PlacedNote], table: TableId) -> PlacedNote | None:
    """Return the note that the table's log begins with; of two tables of that name, the newer's."""
    mine = [note for note in first_notes(notes).values() if note.table == table]
    return max(mine, key=lambda note: note.id, default=None)
