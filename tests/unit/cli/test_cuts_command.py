"""``wal2lake cuts`` and ``sql`` show what a cut holds, and which tables are flagged."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner, Result

from cdc.cli import app
from cdc.config import Config, load
from cdc.lake.layout import ledger_path, table_path
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.tables import TableId

ORDERS = TableId("shop", "orders")
PRICES = TableId("shop", "prices")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "wal2lake.yaml").write_text("source: {tables: [shop.*]}\nlake: {path: lake}\n")
    return load(tmp_path / "wal2lake.yaml", {})


@pytest.fixture
def published(config: Config) -> Ledger:
    """Publish two cuts; between them prices stops, and orders gets three inserts and a delete."""
    ledger = Ledger(ledger_path(config))
    for table in (ORDERS, PRICES):
        write_deltalake(table_path(config, table), pa.table({"id": [1, 2]}))
    entries = [
        TableEntry(
            table=str(table),
            path=table_path(config, table),
            version=0,
            offset=1,
            state="streaming",
            reads=2,
        )
        for table in (ORDERS, PRICES)
    ]
    first = LedgerRow(
        cut=1,
        epoch=1,
        lsn=0x10,
        committed_at=NOON,
        published_at=NOON,
        transactions=0,
        tables=tuple(entries),
    )
    orders = replace(entries[0], inserts=3, deletes=1, offset=5)
    prices = replace(entries[1], state="stopped", reason="its key is gone")
    ledger.append(first)
    ledger.append(replace(first, cut=2, lsn=0x20, transactions=4, tables=(orders, prices)))
    return ledger


def run(config: Config, *arguments: str) -> Result:
    file = str(Path(config.lake.path).parent / "wal2lake.yaml")
    result = CliRunner().invoke(app, [*arguments, "-c", file], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.usefixtures("published")
def test_the_list_shows_what_each_cut_added(config: Config) -> None:
    lines = run(config, "cuts").stdout.splitlines()

    first, second = (line.replace("│", " ").split() for line in lines[2:4])
    assert [first[0], first[2], *first[6:11]] == ["1", "0/10", "0", "0", "0", "4", "0"]
    assert second[:3] == ["2", "1", "0/20"]
    assert second[5:] == ["4", "3", "0", "1", "0", "0", "shop.prices", "stopped"]


@pytest.mark.usefixtures("published")
def test_a_shortened_list_still_counts_from_the_cut_before_it(config: Config) -> None:
    [line] = run(config, "cuts", "--last", "1").stdout.splitlines()[2:]

    assert line.replace("│", " ").split()[5:11] == ["4", "3", "0", "1", "0", "0"]


@pytest.mark.usefixtures("published")
def test_one_cut_shows_every_table_and_its_reason(config: Config) -> None:
    text = run(config, "cuts", "0/20").stdout

    assert "cut 2 at 0/20, committed 2026-01-31 12:00:00.000+00:00, epoch 1, 4 transactions" in text
    assert "shop.prices does not equal the source at cut 2: it stopped at an older cut" in text
    assert ": its key is gone" in text
    assert "does not equal the source" not in run(config, "cuts", "1").stdout


def test_json_is_the_ledger_s_rows(config: Config, published: Ledger) -> None:
    found = json.loads(run(config, "cuts", "--json").stdout)

    assert [row["cut"] for row in found] == [1, 2]
    assert found[1]["lsn"] == "0/20"
    assert found[1]["tables"][1]["reason"] == "its key is gone"
    [row] = published.newest(1)
    assert json.loads(run(config, "cuts", "latest", "--json").stdout) == found[1]
    assert row.cut == 2


def test_nothing_is_published_yet(config: Config) -> None:
    assert run(config, "cuts").stdout == "nothing is published yet\n"
    assert run(config, "cuts", "--json").stdout == "[]\n"


@pytest.mark.usefixtures("published")
def test_a_query_warns_of_flagged_tables_that_it_names(config: Config) -> None:
    both = "select count(*) from shop.orders union all select count(*) from shop.prices"

    assert (
        "warning: shop.prices does not equal the source at cut 2"
        in run(config, "sql", both, "--at", "latest").stderr
    )
    assert run(config, "sql", both, "--at", "1").stderr == ""
    assert run(config, "sql", "select count(*) from shop.orders").stderr == ""
