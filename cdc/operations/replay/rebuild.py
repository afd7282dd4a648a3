"""Rebuilds one table at a path of its own, from its events and its readings.

The table begins as its log begins, or with the newest whole reading of the source, and then goes
through the events by the stream's own code. The changes of later readings are merged when the
table is at their offsets. A table that cannot be rebuilt exactly is refused with the reason.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.difference.merge import merge_difference
from cdc.apply.log_replay import replay
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.content import Catalogue
from cdc.apply.table.structure_notes import PlacedNote
from cdc.config import Job
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.events.structure.structure import Structure, kept_as_text
from cdc.kafka.registry_client import SchemaLookup
from cdc.lake.records import epochs
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Reading, base_of
from cdc.lake.table import store
from cdc.lake.table.positions import Position
from cdc.tables import SchemaPolicy, TableId, TableMode

READ_ANEW: Final = "read the table from the source again: wal2lake resnapshot"
Point = Callable[[], None]
"""Called at safe points; may raise."""
Tell = Callable[[int], None]
"""Called with the number of events applied so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What one table is rebuilt from, up to the wanted offset or further."""

    rows: DataFrame  # of the table's topic, in the columns of the log
    topic: str
    events_from: Literal["log", "kafka"]
    notes: Sequence[PlacedNote]  # all structure changes up to the wanted place
    schemas_of: SchemaLookup
    readings: Sequence[Reading]  # of the table, as far as they count, the oldest first
    begins: PlacedNote | None  # the note of the structure that the table began with, if any
    known: TableSchema | None  # columns and key, for a table without such a note
    first_landing: int  # number of the first landing that the log still has of any table
    budget: int  # events in a batch at most
    placeholder: str  # what the connector sends for a large value that did not change
    quarantine: Quarantine
    policy: Job
    changes: SchemaPolicy = "evolve"
    as_text: Sequence[str] = ()
    append: bool = False  # whether a table without a key takes inserts only
    catalogue: Catalogue | None = None
    snapshot_end: int | None = 0  # LSN of the first snapshot's end, as in the ledger


def rebuild_table(
    session: SparkSession,
    material: Material,
    table: TableId,
    path: str,
    *,
    upto: int,
    epoch: int,
    point: Point = lambda: None,
    tell: Tell = lambda _: None,
) -> AppliedTable:
    """Rebuild the table as of offset ``upto`` of an epoch, at a path where nothing is yet.

    No other table may use ``session``. ``point`` is called between two commits and may raise.
    Raises CHAIN_BROKEN where events are missing, TABLE_STOPPED where one cannot be followed.
    """
    base = base_of(material.readings, upto, epoch)
    whole = base[0] if base and base[0].whole else None
    _refuse_other_epoch(table, whole, epoch)
    rows = _rows_after(material, whole, epoch)
    _refuse_missing(material, table, rows, whole, upto)
    rebuilt = _copied(session, material, table, path, whole) if whole else None
    rebuilt = rebuilt or _created(session, material, table, path)
    for reading in base[1:] if whole else base:
        notes = [note for note in material.notes if note.id <= reading.position.note]
        replay_to(
            rebuilt,
            replace(material, rows=rows, notes=notes),
            upto=reading.position.offset,
            point=point,
            tell=tell,
        )
        _merge(session, rebuilt, reading)
    replay_to(rebuilt, replace(material, rows=rows), upto=upto, point=point, tell=tell)
    return rebuilt


def replay_to(
    table: AppliedTable,
    material: Material,
    *,
    upto: int,
    point: Point = lambda: None,
    tell: Tell = lambda _: None,
) -> None:
    """Replay the table up to the offset, and follow all notes of the material.

    Raises TABLE_STOPPED where an event cannot be followed.
    """

    def schemas_of(ids: Iterable[int]) -> dict[int, str]:  # called before each batch
        point()
        tell(table.position.rows_applied + table.position.refused)
        return material.schemas_of(ids)

    mine = material.rows.where(F.col("offset") <= upto)
    replay(
        mine,
        material.topic,
        table,
        material.notes,
        schemas_of=schemas_of,
        budget=material.budget,
        snapshot_end=material.snapshot_end,
    )
    tell(table.position.rows_applied + table.position.refused)
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
    rows = material.rows
    if whole is not None and material.events_from == "log":
        rows = rows.where(F.col("landing") > whole.landing)
    later = [r.landing for r in material.readings if r.position.epoch > epoch]
    if later and material.events_from == "log":
        rows = rows.where(F.col("landing") <= min(later))
    return rows


def _refuse_missing(
    material: Material, table: TableId, rows: DataFrame, whole: Reading | None, upto: int
) -> None:
    """Raise CHAIN_BROKEN where events are certainly missing.

    A gap between offsets alone proves nothing: Kafka's control records leave gaps too.
    """
    after = whole.position.offset if whole else -1
    if upto <= after or material.events_from == "kafka":
        return
    ends = rows.where(F.col("offset") > after).agg(F.min("offset"), F.max("offset"))
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
    begins, first, schema = material.begins, None, material.known
    if begins is not None and begins.note is not None and begins.note.structure is not None:
        first = kept_as_text(begins.note.structure, list(material.as_text))
        schema = _schema_of(table, first, append=material.append)
    if schema is None:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"no note says which columns {table} began with",
            remedy=f"if the lake has the table, let the job rebuild it; or {READ_ANEW}",
        )
    position = Position(epoch=epochs.FIRST, offset=-1, note=begins.id if begins and first else 0)
    store.create(session, path, schema, position, first)
    return _table(session, material, path, schema=schema, position=position, structure=first)


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
    schema = store.read_schema(session, whole.path, table, whole.version)
    if schema is None:
        return None
    structure = store.read_structure(whole.path, whole.version)
    rows = store.read(session, whole.path, whole.version)
    # Without applied rows, the first batch would be appended instead of merged.
    applied = max(whole.position.rows_applied, rows.count())
    position = replace(whole.position, rows_applied=applied)
    store.replace(session, path, rows, schema, position, structure)
    return _table(session, material, path, schema=schema, position=position, structure=structure)


def _table(
    session: SparkSession,
    material: Material,
    path: str,
    *,
    schema: TableSchema,
    position: Position,
    structure: Structure | None,
) -> AppliedTable:
    return AppliedTable(
        session=session,
        path=path,
        schema=schema,
        position=position,
        quarantine=material.quarantine,
        placeholder=material.placeholder,
        policy=material.policy,
        structure=structure,
        changes=material.changes,
        catalogue=material.catalogue,
    )


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
