"""A table that somebody else changed while the job was down is not published as it is."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.table_factory import TableFactory
from cdc.config import load
from cdc.job.open_tables import TableOpener
from cdc.job.table_begin import schema_of
from cdc.lake.layout import table_path
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table import store
from cdc.lake.table.positions import Position
from cdc.source.catalog.catalog import SourceTable
from cdc.tables import TableId, TableMode

pytestmark = pytest.mark.spark

ORDERS = TableId("shop", "orders")
NOW = datetime(2026, 1, 31, tzinfo=UTC)


def test_a_table_that_somebody_else_wrote_to_stays_at_the_version_of_the_last_cut(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "wal2lake.yaml").write_text("source: {tables: [shop.*]}\nlake: {path: lake}\n")
    config = load(tmp_path / "wal2lake.yaml", {})
    source = SourceTable(
        table=ORDERS, oid=7, columns=(), key=(), mode=TableMode.APPEND, replica_identity="d"
    )
    path, position = table_path(config, ORDERS), Position(epoch=1, offset=5)
    store.create(spark.newSession(), path, schema_of(source), position)
    store.append(path, spark.sql("SELECT 5L AS _cdc_offset"), position)
    entry = TableEntry(
        table=str(ORDERS), path=path, version=1, offset=5, state="streaming", delta_id="its id"
    )
    last = LedgerRow(
        cut=3,
        epoch=1,
        lsn=9,
        committed_at=None,
        published_at=NOW,
        transactions=1,
        tables=(entry,),
    )
    # In a new session: one of the job's may still mark its commits as ours.
    spark.newSession().sql(f"DELETE FROM delta.`{path}` WHERE _cdc_offset = 5")

    opener = TableOpener(
        config=config,
        epoch=None,
        last=last,
        copied=False,
        begins={},
        tables=TableFactory(
            ApplyContext(
                quarantine=Quarantine(str(tmp_path / "quarantine")),
                placeholder="token",
                policy=config.job,
            )
        ),
    )
    [table] = opener.open_tables(spark, [source], lambda: None).values()

    opened = table.entry(5, streaming=True)
    assert (opened.state, opened.version, opened.delta_id) == ("stopped", 1, "its id")
    assert "version 2 of" in opened.reason
    assert "wal2lake replay shop.orders, or wal2lake resnapshot shop.orders" in opened.reason
