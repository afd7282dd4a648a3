"""Opens the lake's tables at the start of the job: creates them, or stops them with a reason."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.table_content import TableContent
from cdc.apply.table.table_factory import TableFactory
from cdc.config import Config, Masks
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.events.schema import TableSchema
from cdc.events.structure.masked import masked, masked_otherwise
from cdc.events.structure.steps import READ_AGAIN
from cdc.events.structure.structure import Structure, kept_as_text
from cdc.failpoints import Failpoint, reach
from cdc.job.table_begin import Beginning, schema_at_begin, schema_of
from cdc.lake.alter.alter import alter
from cdc.lake.commit.alteration import SetProperties
from cdc.lake.files.unreachable import refuse_silence
from cdc.lake.layout import table_path
from cdc.lake.own_session import OwnSession
from cdc.lake.records import epochs
from cdc.lake.records.epochs import Epoch
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.table import positions, store
from cdc.lake.table.positions import LOST, UNREAD, Position
from cdc.observe.defects import error_text
from cdc.source.catalog.catalog import SourceTable
from cdc.tables import TableId, TableState

NOT_READ: Final = "its rows are not in the lake: the log does not have all of them"
GONE: Final = "its Delta table was gone, and the log alone does not have all of its rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOpener:
    """Opens the tables of one lake."""

    config: Config
    epoch: Epoch | None  # None: the first
    last: LedgerRow | None  # the ledger's newest row; None before the first cut
    copied: bool  # whether the log has no first snapshot, and the job reads it by COPY
    begins: Mapping[int, Beginning]  # by OID
    tables: TableFactory

    @property
    def masks(self) -> Masks:
        """Return what ``source.columns`` does to columns now."""
        return self.tables.context.masks

    def open_tables(
        self, spark: SparkSession, sources: list[SourceTable], step: Callable[[], None]
    ) -> dict[str, AppliedTable]:
        """Return the tables by topic, each with a session of its own; create the missing ones.

        ``step`` is called after each. A table that cannot be followed is stopped: unfit in the
        source, another table by now, from an earlier epoch, not read yet, or not as this job left
        it.
        """
        opened: dict[str, AppliedTable] = {}
        for source in sources:
            opened[source.table.topic(self.config.name)] = self._open(OwnSession(spark), source)
            step()
        return opened

    def _open(self, session: OwnSession, source: SourceTable) -> AppliedTable:
        path = table_path(self.config, source.table)
        wanted = schema_of(source)
        try:
            position = self._position(session, path, source, wanted)
            table = self.tables.stored(session, path, position, wanted)
        except CdcError as error:
            return self._broken(session, path, wanted, error)
        except DeltaError as error:
            refuse_silence(error)
            return self._broken(session, path, wanted, _unreadable(path, error))
        if table.position.refused:  # some events may have been settled since its last commit
            table.recount(self.tables.quarantine.open_count(str(source.table)))
        self._judge(table, source, wanted)
        return table

    def _position(
        self, session: OwnSession, path: str, source: SourceTable, wanted: TableSchema
    ) -> Position:
        """Return where the table is; create it where there is none."""
        position = positions.position(path)
        if position is None:
            return self._create(session, path, source, wanted)
        if self.last is not None and self._entry(source.table) is None:
            # It was removed from the configuration, and its changes since then were not applied.
            position = replace(position, reading=UNREAD)
            same = SetProperties({store.MODE_PROPERTY: wanted.mode.value})
            reach(Failpoint.BEFORE_TABLE_RETURN)
            alter(session, path, same, position.metadata())
            reach(Failpoint.AFTER_TABLE_RETURN)
        return position

    def _create(
        self, session: OwnSession, path: str, source: SourceTable, wanted: TableSchema
    ) -> Position:
        begins = self.begins.get(source.oid)
        position = Position(
            epoch=epochs.number(self.epoch),
            offset=-1,
            note=begins.note if begins else 0,
            reading=0 if self._is_in_log(source.table) else self._missing_reading(source.table),
        )
        first = self._chosen(begins.structure) if begins else None
        schema = schema_at_begin(wanted, first)
        content = TableContent(schema=schema, position=position, structure=first)
        reach(Failpoint.BEFORE_TABLE_CREATE)
        self.tables.created(session, path, content)
        reach(Failpoint.AFTER_TABLE_CREATE)
        return position

    def _chosen(self, structure: Structure) -> Structure:
        """Return the structure as the configuration wants it in the lake."""
        return masked(kept_as_text(structure, self.config.source.as_text), self.masks)

    def _is_in_log(self, table: TableId) -> bool:
        """Return whether the log has the whole table, from its first snapshot on."""
        if self.epoch is not None or self.copied:
            return False
        entry = self._entry(table)
        return self.last is None or (entry is not None and entry.reading == 0)

    def _awaits_first_rows(self, table: TableId) -> bool:
        """Return whether the table is one of those that the first snapshot has still to read."""
        if not self.copied or self.epoch is not None:
            return False
        entry = self._entry(table)
        waits = entry is not None and entry.state == TableState.SNAPSHOTTING.value
        return self.last is None or waits

    def _missing_reading(self, table: TableId) -> int:
        """Return the reading number of a table whose rows are missing: never read, or lost."""
        entry = self._entry(table)
        return UNREAD if entry is None or entry.reading == UNREAD else LOST

    def _entry(self, table: TableId) -> TableEntry | None:
        return self.last.entry(str(table)) if self.last else None

    def _broken(
        self, session: OwnSession, path: str, wanted: TableSchema, error: CdcError
    ) -> AppliedTable:
        """Return a stopped table whose Delta table this job did not leave like that.

        The Delta table stays untouched.
        """
        name = wanted.table
        reading = self._missing_reading(name)
        position = Position(epoch=epochs.number(self.epoch), offset=-1, reading=reading)
        table = self.tables.opened(session, path, TableContent(schema=wanted, position=position))
        if (entry := self._entry(name)) is not None and entry.version >= 0:
            table.start_at_version(entry.version, entry.delta_id)
        again = f"wal2lake resnapshot {name}"
        replayed = f"wal2lake replay {name}, or {again}"
        remedy = replayed if reading == LOST else again
        table.stop(error.message, remedy=remedy, code=error.reason)
        return table

    def _judge(self, table: AppliedTable, source: SourceTable, wanted: TableSchema) -> None:
        position = table.position
        again = f"wal2lake resnapshot {source.table}"
        if source.unfit is not None:
            table.stop(source.unfit.message, remedy=f"{source.unfit.remedy}; then start again")
        elif position.reading == UNREAD and self._awaits_first_rows(source.table):
            table.await_first_rows()
        elif position.reading == UNREAD:
            table.stop(NOT_READ, remedy=again)
        elif position.reading == LOST:
            remedy = f"wal2lake replay {source.table}, or {again}"
            table.stop(GONE, remedy=remedy, code=Reason.TABLE_GONE)
        elif table.structure is not None and table.structure.oid != source.oid:
            table.stop("it was dropped and created again in the source", remedy=READ_AGAIN)
        elif position.epoch < epochs.number(self.epoch):
            table.stop(
                f"some of its changes were lost when epoch {epochs.number(self.epoch)} began",
                remedy="wal2lake resnapshot --all",
                code=Reason.EPOCH_BEGAN,
            )
        elif (other := self._other(table, wanted)) is not None:
            table.stop(other, remedy=again)

    def _other(self, table: AppliedTable, wanted: TableSchema) -> str | None:
        """Return why new changes do not go with the table's rows; None if they do."""
        schema = table.schema
        # Where structure changes are noted, the notes say when the key changed.
        if table.structure is None and (schema.key, schema.mode) != (wanted.key, wanted.mode):
            return f"its key was {_identity(schema)} and is {_identity(wanted)} in the source"
        return masked_otherwise(schema, table.structure, self.masks)


def _unreadable(path: str, error: DeltaError) -> CdcError:
    return CdcError(
        ErrorKind.CHAIN_BROKEN,
        f"the Delta table {path} cannot be read: {error_text(error)}",
        reason=Reason.TABLE_UNREADABLE,
    )


def _identity(schema: TableSchema) -> str:
    return ", ".join(schema.key) or f"none ({schema.mode.value})"
