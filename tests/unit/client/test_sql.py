import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from cdc.cli import app
from cdc.client.read.sql import query
from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path, log_path, table_path
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.tables import TableId

ORDERS = TableId("shop", "orders")
ODD = TableId("Big Shop", 'My "T"')


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "wal2lake.yaml").write_text("source: {tables: [shop.*]}\nlake: {path: lake}\n")
    return load(tmp_path / "wal2lake.yaml", {})


def publish(config: Config, cut: int, lsn: int | None, *tables: TableId) -> None:
    entries = tuple(
        TableEntry(
            table=str(table),
            path=table_path(config, table),
            version=DeltaTable(table_path(config, table)).version(),
            offset=cut,
            state="streaming",
        )
        for table in tables
    )
    now = datetime.now(UTC)
    row = LedgerRow(
        cut=cut,
        epoch=1,
        lsn=lsn,
        committed_at=now,
        published_at=now,
        transactions=1,
        tables=entries,
    )
    Ledger(ledger_path(config)).append(row)


def put(config: Config, table: TableId, *ids: int) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int32())})
    write_deltalake(table_path(config, table), rows, mode="append")


def ids(config: Config, text: str, at: str | None = None) -> list[object]:
    return list(query(config, text, at=at).rows.column(0).to_pylist())


def test_a_query_sees_the_published_version_and_not_a_later_one(config: Config) -> None:
    put(config, ORDERS, 1, 2)
    publish(config, 1, 0x10, ORDERS)
    put(config, ORDERS, 3)  # merged, but not part of a cut yet

    assert ids(config, "select count(*) from shop.orders") == [2]


def test_at_reads_an_earlier_cut_by_number_and_by_lsn(config: Config) -> None:
    for cut, lsn in ((1, None), (2, 0x10), (3, 0x30)):
        put(config, ORDERS, cut)
        publish(config, cut, lsn, ORDERS)
    text = "select max(id) from shop.orders"

    assert [ids(config, text, at) for at in ("1", "2", "3", None)] == [[1], [2], [3], [3]]
    assert [ids(config, text, at) for at in ("0/10", "0/2F", "0/30", "A/0")] == [[2], [2], [3], [3]]
    for missing in ("4", "0", "0/F"):
        with pytest.raises(CdcError, match="no cut at"):
            query(config, text, at=missing)


def test_odd_names_of_the_source_can_be_queried(config: Config) -> None:
    put(config, ORDERS, 1)
    put(config, ODD, 1, 2)
    publish(config, 1, 5, ORDERS, ODD)

    joined = 'select count(*) from "shop"."orders" o join "Big Shop"."My ""T""" t on o.id = t.id'
    assert ids(config, joined) == [1]
    names = query(config, "show tables").rows.column("table_name").to_pylist()
    assert {"orders", 'My "T"'} <= set(names)


def test_own_tables_can_be_read(config: Config) -> None:
    assert ids(config, "select 1") == [1]  # before anything is published
    write_deltalake(log_path(config), pa.table({"topic": ["t"], "offset": [7]}))
    put(config, ORDERS, 1)
    publish(config, 1, 0x10, ORDERS)

    assert ids(config, "select cut from wal2lake.ledger") == [1]
    assert ids(config, 'select "offset" from wal2lake.log') == [7]


@pytest.mark.parametrize(
    "text",
    ["selec 1", "select * from shop.nothing", "select nope from shop.orders", "select 1; select 2"],
)
def test_wrong_sql_is_a_config_error(config: Config, text: str) -> None:
    put(config, ORDERS, 1)
    publish(config, 1, 0x10, ORDERS)

    with pytest.raises(CdcError, match="cannot be answered") as caught:
        query(config, text)
    assert caught.value.kind is ErrorKind.CONFIG


def test_a_value_that_does_not_suit_the_query_is_not_quoted(config: Config) -> None:
    path = table_path(config, ORDERS)
    write_deltalake(path, pa.table({"id": ["canary-7f3a"]}))
    publish(config, 1, 0x10, ORDERS)

    with pytest.raises(CdcError, match="cannot be answered") as caught:
        query(config, "select cast(id as int) from shop.orders")
    assert "canary" not in str(caught.value)


def test_a_query_changes_nothing(config: Config) -> None:
    put(config, ORDERS, 1)
    publish(config, 1, 0x10, ORDERS)

    with pytest.raises(CdcError):
        query(config, "insert into shop.orders values (2)")
    query(config, "drop table shop.orders")
    assert ids(config, "select * from shop.orders") == [1]


def test_the_command_prints_exact_values_as_json(config: Config, tmp_path: Path) -> None:
    rows = pa.table(
        {
            "d": pa.array([Decimal("0.0000001")], pa.decimal128(20, 7)),
            "b": pa.array([b"\x00\xff"]),
            "f": pa.array([float("nan")]),
            "t": pa.array([datetime(2020, 1, 2, 3, 4, 5, 6, UTC)], pa.timestamp("us", "UTC")),
            "a": pa.array([[1, None]], pa.list_(pa.int32())),
            "n": pa.array([None], pa.string()),
        }
    )
    write_deltalake(table_path(config, ORDERS), rows)
    publish(config, 1, 0x10, ORDERS)
    command = ["sql", "select * from shop.orders", "-c", str(tmp_path / "wal2lake.yaml")]

    result = CliRunner().invoke(app, [*command, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {
        "d": "0.0000001",
        "b": "\\x00ff",
        "f": "nan",
        "t": "2020-01-02T03:04:05.000006+00:00",
        "a": [1, None],
        "n": None,
    }
    assert "1 row\n" in CliRunner().invoke(app, command).stdout
