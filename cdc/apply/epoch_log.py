"""Read the events and the structure changes of the current epoch from the log."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.log_replay import Recorded
from cdc.apply.rounds.last_cut import LastCut
from cdc.apply.table.structure_notes import PlacedNote, note_rows, read_notes
from cdc.kafka.registry_client import SchemaLookup
from cdc.lake.records.epochs import Epoch
from cdc.lake.table import store


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochLog:
    """Locate the lake's log, and hold what it takes to read and replay it."""

    spark: SparkSession
    path: str
    notes_topic: str
    schemas_of: SchemaLookup
    budget: int  # how many events a replayed batch has at most
    epoch: Epoch | None  # None: the first

    def newest(self) -> "PinnedLog":
        """Return the version that is the newest now, whatever is appended later."""
        return PinnedLog(self, store.read_pinned(self.spark, self.path))


@dataclass(frozen=True, slots=True)
class PinnedLog:
    """One version of the log."""

    log: EpochLog
    rows: DataFrame

    def notes(self, upto: int) -> list[PlacedNote]:
        """Return the structure changes of this epoch, up to an offset in their topic."""
        log = self.log
        after = log.epoch.left_behind_in(log.notes_topic) if log.epoch else -1
        inside = (F.col("offset") > after) & (F.col("offset") <= upto)
        rows = note_rows(self.rows, log.path, log.notes_topic)
        return read_notes(rows.where(inside), log.schemas_of)

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
        )
