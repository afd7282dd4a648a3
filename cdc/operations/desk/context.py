"""Holds what an operation needs from the job, and the steps that several operations share."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from cdc.apply.epoch_log import EpochLog
from cdc.apply.rounds.last_cut import LastCut
from cdc.apply.rounds.table_freezer import TableFreezer
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.table_factory import TableFactory
from cdc.client.status.cut_wait import wait_for_cut
from cdc.client.status.diagnosis import where_it_hangs
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.registry_client import SchemaLookup
from cdc.lake.layout import ledger_path
from cdc.lake.records import epochs
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Readings
from cdc.land.query import Lander
from cdc.operations.desk.reporter import Reporter
from cdc.source.server import barrier
from cdc.source.server.connection import connect
from cdc.state.pipeline import Pipeline
from cdc.tables import BEING_READ, TableId, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildContext:
    """Holds what the rebuild of any table needs; no other thread may use ``session``."""

    session: SparkSession
    config: Config
    schemas_of: SchemaLookup
    factory: TableFactory  # of tables that are rebuilt


CUT_SECONDS: Final = 600.0
"""How long to wait for a cut: the job may be in the middle of a large batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """Holds what an operation needs of the job."""

    pipeline: Pipeline
    spark: SparkSession
    tables: Mapping[str, AppliedTable]  # by topic
    freezer: TableFreezer
    last_cut: Callable[[], LastCut]
    log: EpochLog
    factory: TableFactory
    readings: Readings
    lander: Lander

    @property
    def quarantine(self) -> Quarantine:
        """Return the lake's quarantine."""
        return self.factory.quarantine

    @property
    def config(self) -> Config:
        """Return the configuration that the job runs with."""
        return self.pipeline.config

    def rebuild_context(self) -> RebuildContext:
        """Return what a rebuild needs, with a Spark session of its own."""
        return RebuildContext(
            session=self.spark.newSession(),
            config=self.config,
            schemas_of=self.log.schemas_of,
            factory=self.factory.for_rebuild(),
        )

    def topic(self, table: TableId) -> str:
        """Return the table's topic."""
        return table.topic(self.config.name)

    def live(self, table: TableId) -> AppliedTable:
        """Return the table as the rounds have it; raise CONFIG where it is not captured."""
        live = self.tables.get(self.topic(table))
        if live is None:
            raise CdcError(
                ErrorKind.CONFIG,
                f"{table} is not captured",
                remedy="name it in source.tables and run wal2lake apply-config",
            )
        return live

    @contextmanager
    def flagged(self, table: TableId, *, at_once: bool = True) -> Iterator[AppliedTable]:
        """Mark the table in the ledger as being read again, and thaw it at the end of the block.

        With ``at_once=False`` the table follows on unmarked until ``freeze`` marks it.
        """
        live, topic = self.live(table), self.topic(table)
        if at_once:
            live.flag()
        try:
            yield live
        finally:
            self.freezer.thaw(topic)

    def recount(self, table: str, _: int) -> None:
        """Have the table's next commit count its open events anew, since some were settled."""
        live, quarantine = self.live(TableId.parse(table)), self.quarantine
        self.freezer.between(lambda: live.recount(quarantine.open_count(table)))

    def freeze(self, table: TableId, reporter: Reporter) -> None:
        """Take the table out of the rounds, and return when it is frozen at the last cut."""
        topic = self.topic(table)
        self.live(table).flag()
        self.freezer.freeze(topic)
        while not self.freezer.is_frozen(topic):
            reporter.safe_point()

    def await_streaming(self, table: TableId, reporter: Reporter) -> int:
        """Write a barrier, wait for a cut that has it and in which the table streams again.

        Returns the cut's number. Raises TABLE_STOPPED where the table stops again, TIMEOUT where
        no such cut comes within ``CUT_SECONDS``.
        """
        row = self._published_again(table, reporter)
        if row is None:
            raise CdcError(
                ErrorKind.TIMEOUT,
                f"no cut with {table} was published within {CUT_SECONDS:g} s",
                detail=where_it_hangs(self.config),
                remedy="wal2lake status",
            )
        entry = row.entry(str(table))
        if entry is not None and entry.state == TableState.STOPPED.value:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"{table} stopped again",
                detail=entry.reason,
                remedy="wal2lake status",
            )
        return row.cut

    def _published_again(self, table: TableId, reporter: Reporter) -> LedgerRow | None:
        """Return the first cut that has a new barrier, and the table no longer as being read."""
        ledger = Ledger(ledger_path(self.config))
        last = ledger.last()
        with connect(self.pipeline.endpoints.source_url) as connection:
            lsn = barrier.current_lsn(connection)
            barrier.touch(connection, reporter.progress.id)
        return wait_for_cut(
            ledger,
            lambda row: (
                row.reaches(lsn, epochs.number(self.log.epoch))
                and (entry := row.entry(str(table))) is not None
                and entry.state not in BEING_READ
            ),
            after=last.cut if last else 0,
            timeout=CUT_SECONDS,
            tell=lambda _: reporter.safe_point(),
        )
