"""What an operation of the job works with, and the steps that several of them share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.notes import PlacedNote, note_rows, placed_notes
from cdc.apply.rounds import Applier
from cdc.apply.table import AppliedTable
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake import epochs, store
from cdc.lake.epochs import Epoch
from cdc.lake.layout import ledger_path, log_path
from cdc.lake.ledger import Ledger
from cdc.lake.quarantine import Quarantine
from cdc.lake.readings import Readings
from cdc.operate.cuts import wait_for_cut
from cdc.operate.hang import where_it_hangs
from cdc.operate.material import Kept
from cdc.operate.reporter import Reporter
from cdc.source import barrier
from cdc.source.postgres import connect
from cdc.stack.endpoints import Endpoints
from cdc.tables import TableId, TableState

CUT_SECONDS: Final = 600.0
"""How long the job may take to give a cut: it may be in the middle of a large batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """The job as an operation sees it; ``token`` stands for a value that did not change."""

    config: Config
    endpoints: Endpoints
    spark: SparkSession
    applier: Applier
    quarantine: Quarantine
    readings: Readings
    epoch: Epoch | None  # None: the first
    token: str

    def kept(self) -> Kept:
        """What a table is rebuilt with, in a session of its own."""
        return Kept(
            session=self.spark.newSession(),
            config=self.config,
            schemas_of=self.applier.schemas,
            token=self.token,
            quarantine=self.quarantine,
        )

    def topic(self, table: TableId) -> str:
        return table.topic(self.config.name)

    def live(self, table: TableId) -> AppliedTable:
        """The table as the rounds have it; raises CONFIG for one that the job does not keep."""
        found = self.applier.tables.get(self.topic(table))
        if found is None:
            raise CdcError(
                ErrorKind.CONFIG,
                f"{table} is not captured",
                remedy="name it in source.tables and run wal2lake apply-config",
            )
        return found

    def log(self) -> DataFrame:
        return store.read_pinned(self.spark, log_path(self.config))

    def notes(self, upto: int) -> list[PlacedNote]:
        """Changes of structures in this epoch, up to an offset of their topic."""
        topic, after = self.applier.notes_topic, self.epoch.left_of_notes if self.epoch else -1
        place = (F.col("offset") > after) & (F.col("offset") <= upto)
        rows = note_rows(self.log(), log_path(self.config), topic).where(place)
        ids = [row[0] for row in rows.select("value_schema_id").distinct().collect()]
        return placed_notes(rows, self.applier.schemas(i for i in ids if i is not None))

    @contextmanager
    def flagged(self, table: TableId, *, at_once: bool = True) -> Iterator[AppliedTable]:
        """The table, marked in the ledger as being read again until the rounds have it back.

        One that goes on meanwhile is marked when it is frozen, and not ``at_once``.
        """
        live, topic = self.live(table), self.topic(table)
        live.read_again = at_once
        try:
            yield live
        finally:
            self.applier.freezer.thaw(topic)

    def recount(self, table: str, _: int) -> None:
        """Events of the table were settled: its next commit says how many are open then."""
        live, quarantine = self.live(TableId.parse(table)), self.quarantine
        self.applier.freezer.between(lambda: live.recount(quarantine.open_count(table)))

    def frozen(self, table: TableId, reporter: Reporter) -> None:
        """Take the table out of the rounds; returns when it is at rest at the last cut."""
        topic = self.topic(table)
        self.live(table).read_again = True
        self.applier.freezer.freeze(topic)
        while not self.applier.freezer.is_frozen(topic):
            reporter.point()

    def await_streaming(self, table: TableId, reporter: Reporter) -> int:
        """Write a barrier and wait for the cut that has it with the table in it; its number.

        Raises TABLE_STOPPED where the table stops again, TIMEOUT where no such cut comes.
        """
        ledger = Ledger(ledger_path(self.config))
        last = ledger.last()
        with connect(self.endpoints.source_url) as connection:
            lsn = barrier.current_lsn(connection)
            barrier.touch(connection, reporter.progress.id)
        row = wait_for_cut(
            ledger,
            lambda row: (
                row.reaches(lsn, epochs.number(self.epoch))
                and (entry := row.entry(str(table))) is not None
                and entry.state != TableState.RESNAPSHOTTING.value
            ),
            after=last.cut if last else 0,
            timeout=CUT_SECONDS,
            tell=lambda _: reporter.point(),
        )
        if row is None:
            raise CdcError(
                ErrorKind.TIMEOUT,
                f"no cut with {table} in it came within {CUT_SECONDS:g} s",
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
