"""How a table can be brought to a cut: as a derived one, or by a plain Spark job."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from bench.derived.lake import Lake
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.derive.keep.derived_tables import DerivedTables
from cdc.derive.spark.guards import SETTINGS
from cdc.derive.spark.printing import spark
from cdc.derive.step.limits import Limits
from cdc.derive.step.mark import mark_facts
from cdc.errors import CdcError, ErrorKind
from cdc.events.names import OURS
from cdc.events.values.sql_text import spark_name
from cdc.state.derived_requests import pauses, rebuilds
from cdc.tables import TableState

MEMORY_MB: Final = 512  # the default of derived.memory_mb
QUIET: Final = {"spark.log.level": "OFF"}
"""Of Spark: Delta reports filters that Parquet cannot take as errors."""
_PATIENT: Final = 3600.0  # seconds


@dataclass(kw_only=True)
class Derived:
    """One derived table, kept as the job keeps it; ``close`` ends it."""

    definition: Definition
    lake: Lake
    folder: Path
    _tables: DerivedTables = field(init=False)

    def __post_init__(self) -> None:
        limits = Limits(
            memory_mb=MEMORY_MB,
            full_rows=10**9,
            kept_hours=1,
            measured=True,
            scratch=self.folder / "scratch",
        )
        self._tables = DerivedTables(
            [self.definition],
            lambda _: str(self.path),
            limits,
            last=(),
            rebuilds=rebuilds(self.folder),
            pauses=pauses(self.folder),
            seconds=_PATIENT,
        )

    @property
    def path(self) -> Path:
        """Return where the table is."""
        return self.folder / "table"

    def bring(self, cut: int) -> float:
        """Bring it to a cut, and return the seconds. Raises TABLE_STOPPED if it cannot be."""
        row = self.lake.row(cut)
        began = time.perf_counter()
        (entry,) = self._tables.entries(row)
        seconds = time.perf_counter() - began
        if entry.state != TableState.STREAMING.value:
            raise CdcError(ErrorKind.TABLE_STOPPED, f"{entry.table}: {entry.reason}")
        return seconds

    def cost(self) -> dict[str, Any]:
        """Return how its newest commit was calculated: the facts of a Cost."""
        found: dict[str, Any] = mark_facts(DeltaTable(str(self.path)))["cost"]
        return found

    def close(self) -> None:
        """End its thread and give up its memory."""
        self._tables.close()


@dataclass(kw_only=True)
class SparkJob:
    """A job that reads the tables, runs the query and replaces the rows of a Delta table."""

    definition: Definition
    lake: Lake
    folder: Path
    session: SparkSession

    @property
    def path(self) -> Path:
        """Return where the table is."""
        return self.folder / "table"

    def bring(self, cut: int) -> float:
        """Calculate the table at a cut, and return the seconds."""
        assert self.definition.query is not None  # noqa: S101 - only queries are measured
        own = self.session.newSession()
        for setting, value in SETTINGS.items():
            own.conf.set(setting, value)
        inputs, text = self.lake.inputs(cut), spark(self.definition.query)
        began = time.perf_counter()
        for table in self.definition.inputs:
            _read(own, inputs[table]).createOrReplaceTempView(spark_name(str(table)))
        found = own.sql(text).write.format("delta").mode("overwrite")
        found.option("overwriteSchema", "true").save(str(self.path))
        return time.perf_counter() - began


def _read(session: SparkSession, one: Input) -> DataFrame:
    rows = session.read.format("delta").option("versionAsOf", one.version).load(one.path)
    return rows.select(*(spark_name(name) for name in rows.columns if not name.startswith(OURS)))
