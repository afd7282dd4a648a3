"""Gathers what a table is rebuilt from: out of the lake's log, or of Kafka's topics alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.log_replay import Recorded
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.structure_notes import PlacedNote, first_notes, note_rows, read_notes
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.kafka.broker import Broker
from cdc.lake.layout import log_path
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Reading
from cdc.lake.table import store
from cdc.lake.table.positions import NOTHING, landed_position
from cdc.operations.desk.context import RebuildContext
from cdc.operations.replay import topic_copy
from cdc.operations.replay.material import (
    READ_ANEW,
    FirstSchema,
    Hooks,
    Material,
    ReplayEnd,
    end_of_topics,
)
from cdc.operations.replay.rebuild import rebuild_table
from cdc.operations.replay.topic_copy import FROM_LOG, TopicCopy
from cdc.tables import STRUCTURE, TableId, matches

_KEPT_NOTES: Final = 4096
"""How many notes the source keeps at least; older ones may be compacted away."""


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
    mine, placed = log.where(F.col("topic") == topic), read_notes(notes, context.schemas_of)
    recorded = _recorded(context, table, mine, placed)
    return replace(
        _material(context, replace(recorded, snapshot_end=end.snapshot_end), table, known),
        first_landing=max(first, expired + 1),
        readings=readings,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FromKafka:
    """Copies of a table's topics, and the end up to which they are used."""

    material: Material
    copied: TopicCopy
    end: ReplayEnd


def from_kafka(
    context: RebuildContext,
    broker: Broker,
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
    end = end or end_of_topics(broker, topic, notes_topic)
    events = _copied(context, broker, topic, f"{folder}/events", end.upto)
    _refuse_readings(events, table, readings)
    notes = _copied(context, broker, notes_topic, f"{folder}/notes", None).rows
    placed = read_notes(notes.where(F.col("offset") <= end.notes), context.schemas_of)
    recorded = _recorded(context, table, events.rows, placed)
    material = _material(context, recorded, table, known)
    material = replace(material, events_from="kafka", readings=readings)
    _refuse_late(material, table)
    return FromKafka(material=material, copied=events, end=end)


def _copied(
    context: RebuildContext, broker: Broker, topic: str, folder: str, upto: int | None
) -> TopicCopy:
    span = context.config.job.max_events_per_batch
    history = topic_copy.copy_topic(context.session, broker, topic, folder, upto=upto, span=span)
    topic_copy.check(history, context.schemas_of, context.factory.placeholder)
    return history


def rebuild_from_kafka(
    context: RebuildContext,
    source: FromKafka,
    table: TableId,
    path: str,
    hooks: Hooks,
) -> AppliedTable:
    """Rebuild the table; raise CHAIN_BROKEN where compaction may have made it another table."""
    compacted, end = source.copied.facts.compacted, source.end
    rebuild = partial(rebuild_table, upto=end.upto, epoch=end.epoch, hooks=hooks)
    try:
        rebuilt = rebuild(context.session, source.material, table, path)
    except CdcError as error:
        if compacted and error.kind is ErrorKind.TABLE_STOPPED:
            raise CdcError(ErrorKind.CHAIN_BROKEN, error.message, remedy=FROM_LOG) from None
        raise
    if compacted and rebuilt.position.refused:
        raise _refused(context.factory.quarantine, source.copied.topic, table)
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
    begins = material.first.note
    newest = max((note.id for note in material.recorded.notes), default=0)
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
    context: RebuildContext, recorded: Recorded, table: TableId, known: TableSchema | None
) -> Material:
    """Return the material of a table that was never read again, from the log's first landing on."""
    source = context.config.source
    return Material(
        recorded=recorded,
        events_from="log",
        first_landing=1,
        readings=(),
        first=FirstSchema(
            note=_first_note(recorded.notes, table),
            known=known,
            as_text=source.as_text,
            append=matches(table, source.append_only),
        ),
        tables=context.factory,
    )


def _recorded(
    context: RebuildContext, table: TableId, rows: DataFrame, notes: Sequence[PlacedNote]
) -> Recorded:
    return Recorded(
        rows=rows,
        topic=table.topic(context.config.name),
        notes=notes,
        schemas_of=context.schemas_of,
        budget=context.config.job.max_events_per_batch,
    )


def _first_note(notes: Sequence[PlacedNote], table: TableId) -> PlacedNote | None:
    """Return the note that the table's log begins with; of two tables of that name, the newer's."""
    mine = [note for note in first_notes(notes).values() if note.table == table]
    return max(mine, key=lambda note: note.id, default=None)
