"""Rebuilds one table at a path of its own, from its events and its readings.

The table begins as its log begins, or with the newest whole reading of the source, and then goes
through the events by the stream's own code. The changes of later readings are merged when the
table is at their offsets. A table that cannot be rebuilt exactly is refused with the reason.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.difference.merge import merge_difference
from cdc.apply.log_replay import replay
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.table_content import TableContent
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.events.structure.masked import masked
from cdc.events.structure.structure import Structure, kept_as_text
from cdc.lake.records import epochs
from cdc.lake.records.readings import Reading, base_of
from cdc.lake.table import store
from cdc.lake.table.positions import Position
from cdc.operations.replay.material import READ_ANEW, Hooks, Material
from cdc.tables import TableId, TableMode

NO_HOOKS: Final = Hooks()


def rebuild_table(
    session: SparkSession,
    material: Material,
    table: TableId,
    path: str,
    *,
    upto: int,
    epoch: int,
    hooks: Hooks = NO_HOOKS,
) -> AppliedTable:
    """Rebuild the table as of offset ``upto`` of an epoch, at a path where nothing is yet.

    No other table may use ``session``.
    Raises CHAIN_BROKEN where events are missing, TABLE_STOPPED where one cannot be followed.
    """
    base = base_of(material.readings, upto, epoch)
    whole = base[0] if base and base[0].whole else None
    _refuse_other_epoch(table, whole, epoch)
    material = material.with_rows(_rows_after(material, whole, epoch))
    _refuse_missing(material, table, whole, upto)
    rebuilt = _copied(session, material, table, path, whole) if whole else None
    rebuilt = rebuilt or _created(session, material, table, path)
    for reading in base[1:] if whole else base:
        before = material.with_notes_to(reading.position.note)
        replay_to(rebuilt, before, upto=reading.position.offset, hooks=hooks)
        _merge(session, rebuilt, reading)
    replay_to(rebuilt, material, upto=upto, hooks=hooks)
    return rebuilt


def replay_to(
    table: AppliedTable, material: Material, *, upto: int, hooks: Hooks = NO_HOOKS
) -> None:
    """Replay the table up to the offset, and follow all notes of the material.

    Raises TABLE_STOPPED where an event cannot be followed.
    """

    def schemas_of(ids: Iterable[int]) -> dict[int, str]:  # called before each batch
        hooks.point()
        hooks.tell(table.position.rows_applied + table.position.refused)
        return recorded.schemas_of(ids)

    recorded = material.recorded
    rows = recorded.rows.where(F.col("offset") <= upto)
    replay(replace(recorded, rows=rows, schemas_of=schemas_of), table)
    hooks.tell(table.position.rows_applied + table.position.refused)
    if not table.following:
        raise _stopped(table, material)


def _stopped(table: AppliedTable, material: Material) -> CdcError:
    reason, _, remedy = table.entry(-1, streaming=True).reason.partition("; remedy: ")
    return CdcError(
        ErrorKind.TABLE_STOPPED,
        f"{table.schema.table} cannot be rebuilt from the {material.events_from} "
        f"beyond offset {table.position.offset}: {reason}",
        remedy=remedy or READ_ANEW,
    )


def _refuse_other_epoch(table: TableId, whole: Reading | None, epoch: int) -> None:
    begins = whole.position.epoch if whole else epochs.FIRST
    if begins != epoch:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"{table} was not read whole in epoch {epoch}, and earlier epochs have gaps",
            remedy=READ_ANEW,
        )


def _rows_after(material: Material, whole: Reading | None, epoch: int) -> DataFrame:
    """Return the rows of this epoch beyond the base; offsets of other epochs do not compare."""
    rows = material.recorded.rows
    if whole is not None and material.events_from == "log":
        rows = rows.where(F.col("landing") > whole.landing)
    later = [r.landing for r in material.readings if r.position.epoch > epoch]
    if later and material.events_from == "log":
        rows = rows.where(F.col("landing") <= min(later))
    return rows


def _refuse_missing(material: Material, table: TableId, whole: Reading | None, upto: int) -> None:
    """Raise CHAIN_BROKEN where events are certainly missing.

    A gap between offsets alone proves nothing: Kafka's control records leave gaps too.
    """
    after = whole.position.offset if whole else -1
    if upto <= after or material.events_from == "kafka":
        return
    ends = material.recorded.rows.where(F.col("offset") > after).agg(
        F.min("offset"), F.max("offset")
    )
    first, last = ends.collect()[0]
    _refuse(material, table, f"ends before offset {upto}", last is None or last < upto)
    expired = material.first_landing > (whole.landing if whole else 0) + 1
    read_since = any(r.whole and r.position.offset > upto for r in material.readings)
    reason = f"begins at offset {first}: the events after offset {after} have been removed"
    gap = first is not None and first > after + 1
    _refuse(material, table, reason, gap and (expired or (whole is None and read_since)))


def _refuse(material: Material, table: TableId, reason: str, broken: object) -> None:
    if broken:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"the {material.events_from} of {table} {reason}",
            remedy=f"choose a later cut, or {READ_ANEW}",
        )


def _created(session: SparkSession, material: Material, table: TableId, path: str) -> AppliedTable:
    """Create the empty table with the structure that its log begins with."""
    begins, structure, schema = material.first.note, None, material.first.known
    if begins is not None and begins.note is not None and begins.note.structure is not None:
        noted = masked(begins.note.structure, material.tables.context.masks)
        structure = kept_as_text(noted, list(material.first.as_text))
        schema = _schema_of(table, structure, append=material.first.append)
    if schema is None:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"no note says which columns {table} began with",
            remedy=f"if the lake has the table, let the job rebuild it; or {READ_ANEW}",
        )
    note = begins.id if begins and structure else 0
    position = Position(epoch=epochs.FIRST, offset=-1, note=note)
    content = TableContent(schema=schema, position=position, structure=structure)
    return material.tables.created(session, path, content)


def _schema_of(table: TableId, structure: Structure, *, append: bool) -> TableSchema:
    mode = structure.mode(append=append)
    if not isinstance(mode, TableMode):
        raise CdcError(ErrorKind.SOURCE_NOT_READY, f"{table} {mode}", remedy="wal2lake check")
    return TableSchema(
        table=table,
        columns=tuple(column.column for column in structure.followed),
        key=structure.key if mode is TableMode.KEYED else (),
        mode=mode,
    )


def _copied(
    session: SparkSession, material: Material, table: TableId, path: str, whole: Reading
) -> AppliedTable | None:
    """Copy the reading in one commit; None where it has no schema."""
    schema = store.read_schema(whole.path, table, whole.version)
    if schema is None:
        return None
    structure = store.read_structure(whole.path, whole.version)
    rows = store.read(session, whole.path, whole.version)
    # Without applied rows, the first batch would be appended instead of merged.
    applied = max(whole.position.rows_applied, rows.count())
    position = replace(whole.position, rows_applied=applied)
    content = TableContent(schema=schema, position=position, structure=structure)
    return material.tables.copied(session, path, rows, content)


def _merge(session: SparkSession, table: AppliedTable, reading: Reading) -> None:
    """Merge the difference that the reading found, and move the table to the reading's position.

    Its note and its steps stay those that the table has followed.
    """
    rows = store.read(session, reading.path, reading.version)
    applied = max(reading.position.rows_applied, table.position.rows_applied, 1)
    position = replace(
        reading.position,
        note=table.position.note,
        steps=table.position.steps,
        rows_applied=applied,
    )
    merge_difference(session, table.path, table.schema, rows, position)
    table.move(position)
