"""Read the events and the structure changes of the current epoch from the log."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.log_replay import Recorded
from cdc.apply.rounds.last_cut import LastCut
from cdc.apply.table.structure_notes import PlacedNote, notes_in_log
from cdc.kafka.registry_client import SchemaLookup
from cdc.lake.files.delta import delta_table
from cdc.lake.records.epochs import Epoch
from cdc.lake.table import store
from cdc.land.small_batches import SmallBatches


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochLog:
    """Locate the lake's log, and hold what it takes to read and replay it."""

    spark: SparkSession
    path: str
    notes_topic: str
    schemas_of: SchemaLookup
    budget: int  # how many events a replayed batch has at most
    epoch: Epoch | None  # None: the first
    small: SmallBatches = field(default_factory=lambda: SmallBatches(0))
    """Which replayed batches come to this process, if any; for the thread that replays."""

    def newest(self) -> "PinnedLog":
        """Return the version that is the newest now, whatever is appended later."""
        return PinnedLog(self, delta_table(self.path).version())


@dataclass(frozen=True)
class PinnedLog:
    """Reads one version of the log."""

    log: EpochLog
    version: int

    @cached_property
    def rows(self) -> DataFrame:
        """Its rows; Spark is asked only if a table has to be replayed."""
        return store.read(self.log.spark, self.log.path, self.version)

    def notes(self, upto: int) -> list[PlacedNote]:
        """Return the structure changes of this epoch, up to an offset in their topic."""
        log = self.log
        after = log.epoch.left_behind_in(log.notes_topic) if log.epoch else -1
        return notes_in_log(log.path, log.notes_topic, log.schemas_of, after=after, upto=upto)

    def notes_in(self, cut: LastCut) -> list[PlacedNote]:
        """Return the structure changes of this epoch that are inside a cut."""
        return self.notes(cut.offsets[self.log.notes_topic])

    def recorded(self, topic: str, cut: LastCut, notes: Sequence[PlacedNote]) -> Recorded:
        """Return a table's events up to a cut; ``notes`` are the structure changes inside it."""
        upto = cut.offsets[topic]
        return Recorded(
            rows=self.rows.where((F.col("topic") == topic) & (F.col("offset") <= upto)),
            topic=topic,
            notes=notes,
            schemas_of=self.log.schemas_of,
            budget=self.log.budget,
            snapshot_end=cut.row.snapshot_end,
            small=self.log.small,
        )
