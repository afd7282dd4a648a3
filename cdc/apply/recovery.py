"""At the start: what the lake itself says of how far it is, and how the rest is made good.

Nothing is remembered elsewhere. The log's newest commit says what has landed, each table's what
is applied, the ledger's newest row where the last cut lies. A table behind that cut (new,
deleted, stopped before) is replayed from the log before the first round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply import landings as landed_values
from cdc.apply.land import create_log, landings, summary
from cdc.apply.notes import PlacedNote, first_notes, placed_notes
from cdc.apply.replaying import Schemas, replay
from cdc.apply.rounds import Applier
from cdc.apply.table import AppliedTable, Catalogue
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column, TableSchema
from cdc.events.steps import READ_AGAIN
from cdc.events.structure import Structure, kept_as_text, parse
from cdc.kafka.topics import topic_ids
from cdc.lake import epochs, progress, store
from cdc.lake.epochs import Epoch
from cdc.lake.layout import epochs_path, log_path, table_path
from cdc.lake.progress import LandedPosition, Position
from cdc.lake.quarantine import Quarantine
from cdc.source.catalog import SourceTable
from cdc.stack.endpoints import Endpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The structure of the source that a table's log begins with; ``note`` is the note's id."""

    note: int
    structure: Structure


def open_log(
    spark: SparkSession, config: Config, endpoints: Endpoints, topics: list[str]
) -> LandedPosition:
    """The log's position; creates the log. Raises CHAIN_BROKEN for a topic that is another."""
    path = log_path(config)
    ids = topic_ids(endpoints.kafka, topics)
    epoch = epochs.number(epochs.last(epochs_path(config)))
    landed = progress.landed_position(path)
    if landed is None:
        landed = LandedPosition(epoch=epoch, landing=0, offsets={}, topic_ids=ids)
        create_log(spark, path, landed)
        return landed
    for topic, known in landed.topic_ids.items():
        if ids.get(topic, known) != known:
            raise CdcError(
                ErrorKind.CHAIN_BROKEN,
                f"topic {topic} is not the one whose events have landed: it was recreated",
                detail="a new epoch goes on in the topics that there are, and not in others",
                remedy="restore the topic, or give the pipeline a new name and an empty lake",
            )
    return replace(landed, epoch=epoch, topic_ids={**landed.topic_ids, **ids})


def open_tables(
    spark: SparkSession,
    config: Config,
    sources: list[SourceTable],
    quarantine: Quarantine,
    placeholder: str,
    *,
    begins: Mapping[int, Beginning],
    catalogue: Catalogue | None,
) -> dict[str, AppliedTable]:
    """The tables by topic, each with its own session; creates those that are not there.

    Stopped is what cannot be followed: unfit in the source, another table, or of an earlier epoch.
    """
    epoch = epochs.number(epochs.last(epochs_path(config)))
    return {
        source.table.topic(config.name): _open_table(
            spark.newSession(),
            config,
            source,
            quarantine,
            placeholder,
            begins=begins.get(source.oid),
            catalogue=catalogue,
            epoch=epoch,
        )
        for source in sources
    }


def beginnings(
    spark: SparkSession,
    config: Config,
    notes_topic: str,
    schemas: Schemas,
    noted: Mapping[int, tuple[int, str]],
) -> dict[int, Beginning]:
    """What each table begins with, by OID: as the log has it, else as the source ``noted`` it."""
    log = spark.read.format("delta").load(log_path(config))
    rows = log.where(F.col("topic") == notes_topic)
    ids = [row[0] for row in rows.select("value_schema_id").distinct().collect()]
    landed = placed_notes(rows, schemas(number for number in ids if number is not None))
    found = {
        oid: Beginning(note=number, structure=parse(text)) for oid, (number, text) in noted.items()
    }
    for oid, first in first_notes(landed).items():
        if first.note is not None and first.note.structure is not None:
            found[oid] = Beginning(note=first.id, structure=first.note.structure)
    return found


def _open_table(
    session: SparkSession,
    config: Config,
    source: SourceTable,
    quarantine: Quarantine,
    placeholder: str,
    *,
    begins: Beginning | None,
    catalogue: Catalogue | None,
    epoch: int,
) -> AppliedTable:
    path = table_path(config, source.table)
    wanted = schema_of(source)
    position = progress.position(path)
    if position is None:
        # Its log begins there: in a later epoch it stands at its last state of before.
        position = Position(epoch=epochs.FIRST, offset=-1, note=begins.note if begins else 0)
        first = kept_as_text(begins.structure, config.source.as_text) if begins else None
        store.create(session, path, _begun(wanted, first), position, first)
    schema = store.read_schema(session, path, source.table) or wanted
    table = AppliedTable(
        session=session,
        path=path,
        schema=schema,
        position=position,
        quarantine=quarantine,
        placeholder=placeholder,
        policy=config.job,
        structure=store.read_structure(path),
        changes=config.source.schema_policy(source.table),
        catalogue=catalogue,
    )
    _stop_unfollowable(table, source, wanted, epoch)
    return table


def _stop_unfollowable(
    table: AppliedTable, source: SourceTable, wanted: TableSchema, epoch: int
) -> None:
    schema = table.schema
    if source.unfit is not None:
        table.stop(source.unfit.message, remedy=f"{source.unfit.remedy}; then start again")
    elif table.structure is not None and table.structure.oid != source.oid:
        table.stop("it was dropped and created again in the source", remedy=READ_AGAIN)
    elif table.position.epoch < epoch:
        table.stop(
            f"changes of it were lost when epoch {epoch} began",
            remedy="wal2lake resnapshot --all",
        )
    # Where changes are noted, the notes say when the key became another.
    elif table.structure is None and (schema.key, schema.mode) != (wanted.key, wanted.mode):
        table.stop(
            f"its key was {_identity(schema)} and is {_identity(wanted)} in the source",
            remedy=f"delete {table.path}; it is rebuilt from the log at the next start",
        )


def schema_of(source: SourceTable) -> TableSchema:
    """The lake's table for a table of the source: the columns that arrive."""
    return TableSchema(
        table=source.table,
        columns=tuple(
            Column(column.name, column.type, nullable=not column.not_null, as_text=column.is_text)
            for column in source.columns
            if column.arrives
        ),
        key=source.key,
        mode=source.mode,
    )


def _begun(wanted: TableSchema, first: Structure | None) -> TableSchema:
    """The table at the beginning of its log."""
    if first is None:
        return wanted
    columns = tuple(column.column for column in first.followed)
    return replace(wanted, columns=columns, key=first.key)


def catch_up(spark: SparkSession, path: str, applier: Applier, epoch: Epoch | None = None) -> None:
    """Refill the inbox with what landed after the last cut; replay tables that are behind it.

    ``epoch`` is the lake's newest: landings that it left behind whole are passed over.
    """
    log = spark.read.format("delta").load(path)
    base = applier.base
    for topic, table in applier.tables.items():
        if base.entry(str(table.schema.table)) is None:
            landed = (F.col("topic") == topic) & (F.col("landing") <= base.landing_floor)
            applier.offsets[topic] = max(_last(log.where(landed)), _left(epoch, topic))
    waiting = landings(summary(log.where(F.col("landing") > base.landing_floor)))
    passed = landed_values.floor(waiting, applier.offsets, base.landing_floor)
    for landing in waiting:
        if landing.number > passed:
            applier.inbox.add(landing)
    _go_on(log, applier, list(applier.tables), epoch)


def resume(spark: SparkSession, path: str, applier: Applier, epoch: Epoch | None = None) -> None:
    """Bring tables to the last cut that may follow again.

    Those that were read again; and stopped ones of whose structure the cut tells more, a key that
    is given back, for one. What cannot go on stops again for the same reason, and a table of an
    earlier epoch stays stopped: what it missed is in no log.
    """
    noted = [topic for topic in applier.take_noted() if _is_of(applier, topic)]
    for topic in noted:
        applier.tables[topic].again()
    if topics := [*noted, *applier.freezer.between_rounds()]:
        _go_on(spark.read.format("delta").load(path), applier, topics, epoch)


def _is_of(applier: Applier, topic: str) -> bool:
    """Whether the table is of the present epoch."""
    return applier.tables[topic].position.epoch >= applier.base.epoch


def _left(epoch: Epoch | None, topic: str) -> int:
    return -1 if epoch is None else epoch.left(topic)


def _go_on(log: DataFrame, applier: Applier, topics: Sequence[str], epoch: Epoch | None) -> None:
    """Bring tables to the last cut."""
    notes = _notes(log, applier, after=_left(epoch, applier.notes_topic))
    for topic in topics:
        table, upto = applier.tables[topic], applier.offsets[topic]
        if table.following and (table.position.offset < upto or table.pending(notes)):
            mine = log.where((F.col("topic") == topic) & (F.col("offset") <= upto))
            replay(mine, topic, table, notes, schemas_of=applier.schemas, budget=applier.budget)


def _last(rows: DataFrame) -> int:
    found = rows.agg(F.max("offset").alias("last")).collect()[0]["last"]
    return -1 if found is None else int(found)


def _notes(log: DataFrame, applier: Applier, *, after: int) -> list[PlacedNote]:
    """All changes of structures in the log between an offset and the last cut."""
    upto = applier.offsets[applier.notes_topic]
    place = (F.col("offset") > after) & (F.col("offset") <= upto)
    rows = log.where((F.col("topic") == applier.notes_topic) & place)
    ids = [row[0] for row in rows.select("value_schema_id").distinct().collect()]
    return placed_notes(rows, applier.schemas(number for number in ids if number is not None))


def _identity(schema: TableSchema) -> str:
    return ", ".join(schema.key) or f"none ({schema.mode.value})"
