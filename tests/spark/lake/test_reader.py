"""``cdc.read`` and ``cdc.views`` in Spark: tables at one published cut, by name."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import cdc
from cdc.errors import CdcError
from cdc.lake.layout import ledger_under, table_under
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.lake.table.positions import open_table
from cdc.lake.upkeep.transaction_log import AGE_LIMIT
from cdc.tables import TableId
from tests.aged import age
from tests.local_spark import frame_of

pytestmark = pytest.mark.spark

ORDERS = TableId("shop", "orders")
ODD = TableId("Big Shop", 'My "T" `x`')
NAMES = {str(ODD): "big_shop.my_t"}
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def publish(lake: str, cut: int, states: dict[TableId, str]) -> None:
    entries = []
    for table, state in states.items():
        opened = open_table(table_under(lake, table))
        assert opened is not None
        entries.append(
            TableEntry(table=str(table), path="", version=opened.version(), offset=cut, state=state)
        )
    row = LedgerRow(
        cut=cut,
        epoch=1,
        lsn=cut,
        committed_at=NOON,
        published_at=NOON,
        transactions=1,
        tables=tuple(entries),
    )
    Ledger(ledger_under(lake)).append(row)


def put(spark: SparkSession, lake: str, table: TableId, *ids: int) -> None:
    rows = frame_of(spark, [(i,) for i in ids], "id int")
    rows.write.format("delta").mode("append").save(table_under(lake, table))


def a_users_session(spark: SparkSession) -> SparkSession:
    """Return a session with Delta's default; the session of these tests has the job's settings."""
    session = spark.newSession()
    session.conf.set(AGE_LIMIT, "true")
    return session


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> str:
    """Create two cuts of two tables, and rows of a third cut that is not published."""
    lake = str(tmp_path / "the lake")
    for cut in (1, 2):
        put(spark, lake, ORDERS, cut)
        put(spark, lake, ODD, cut * 10)
        publish(lake, cut, {ORDERS: "streaming", ODD: "streaming"})
    put(spark, lake, ORDERS, 3)
    return lake


def test_a_table_at_a_cut_is_a_dataframe(spark: SparkSession, lake: str) -> None:
    newest = cdc.read("shop.orders", lake=lake, spark=spark)
    first = cdc.read("shop.orders", at=1, lake=lake, spark=spark)

    assert sorted(row.id for row in newest.collect()) == [1, 2]
    assert [row.id for row in first.collect()] == [1]


def test_views_show_all_tables_at_one_cut(spark: SparkSession, lake: str) -> None:
    text = "SELECT (SELECT sum(id) FROM shop.orders), (SELECT sum(id) FROM big_shop.my_t)"

    assert cdc.views(spark, at=1, lake=lake, names=NAMES).cut == 1
    assert tuple(spark.sql(text).collect()[0]) == (1, 10)
    assert cdc.views(spark, lake=lake, names=NAMES).cut == 2
    assert tuple(spark.sql(text).collect()[0]) == (3, 30)


def test_a_view_stays_at_its_cut_until_it_is_created_again(spark: SparkSession, lake: str) -> None:
    cdc.views(spark, lake=lake, names=NAMES)
    publish(lake, 3, {ORDERS: "streaming", ODD: "streaming"})

    assert spark.table("shop.orders").count() == 2


def test_a_long_idle_table_is_read_at_the_cut_before_it_changed(
    spark: SparkSession, lake: str
) -> None:
    """Delta's own limit depends on when a version was created, not until when it was the newest."""
    reading, viewing = (a_users_session(spark) for _ in range(2))
    age(table_under(lake, ORDERS), days=8)
    put(spark, lake, ORDERS, 4)

    found = cdc.read("shop.orders", lake=lake, spark=reading).collect()
    assert sorted(row.id for row in found) == [1, 2]
    cdc.views(viewing, lake=lake, names=NAMES)
    assert viewing.table("shop.orders").count() == 2


def test_a_flagged_table_has_no_view(spark: SparkSession, lake: str) -> None:
    cdc.views(spark, lake=lake, names=NAMES)
    publish(lake, 3, {ORDERS: "stopped", ODD: "streaming"})

    cdc.views(spark, lake=lake, names=NAMES)
    assert not spark.catalog.tableExists("shop.orders")
    with pytest.raises(CdcError, match="does not equal the source"):
        cdc.read("shop.orders", lake=lake, spark=spark)

    cdc.views(spark, lake=lake, flagged=True, names={str(ODD): ""})
    assert spark.table("shop.orders").count() == 3


def test_a_name_that_the_catalogue_refuses_is_reported_before_any_view_is_created(
    spark: SparkSession, lake: str
) -> None:
    spark.sql("DROP VIEW IF EXISTS shop.orders")

    with pytest.raises(CdcError, match="cannot have a view named Big Shop") as caught:
        cdc.views(spark, lake=lake)
    assert "names=" in caught.value.remedy
    assert not spark.catalog.tableExists("shop.orders")
