"""A definition of a history has front matter only, and is refused at its place."""

from pathlib import Path

import pytest

from cdc.derive.definition.declared import declared
from cdc.derive.definition.inlined import beyond_sql
from cdc.derive.engine.calculator import calculator
from cdc.errors import CdcError
from cdc.tables import TableId
from tests.unit.derive.definition.reading import definition, problem

HISTORY = "/* ---\nkind: history\ntable: shop.customers\ntrack: [tier, country]\n--- */\n"


def test_its_table_and_tracked_columns_are_read() -> None:
    read = definition(HISTORY, "marts.past.sql")

    assert (read.inputs, read.postgres, read.key) == ((TableId("shop", "customers"),), "", ())
    assert read.history is not None
    assert read.history.track == ("tier", "country")
    assert beyond_sql(read, {}) is read
    every = definition(HISTORY.replace("track: [tier, country]\n", ""), "marts.past.sql")
    assert every.history is not None
    assert every.history.track == ()
    assert every.hash != read.hash


def test_its_columns_are_those_of_the_table_and_when_they_held() -> None:
    read = definition(HISTORY, "marts.past.sql")
    with calculator(64) as database:
        database.run('CREATE SCHEMA shop; CREATE TABLE shop.customers (id INT, "tier" TEXT)')
        with pytest.raises(CdcError, match="country"):
            database.outputs(read.duckdb)
        database.run("ALTER TABLE shop.customers ADD COLUMN country TEXT")
        found = {one.name: one.type for one in database.outputs(read.duckdb)}

    assert list(found)[:3] == ["id", "tier", "country"]
    assert found["_from_lsn"] == found["_to_lsn"] == found["_epoch"] == "BIGINT"
    assert found["_from"] == found["_to"] == "TIMESTAMP WITH TIME ZONE"


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (
            HISTORY + "\nSELECT * FROM shop.customers",
            "7:1: a history has no query",
            "remove it: the columns are those of the table",
        ),
        (
            HISTORY.replace("table: shop.customers\n", ""),
            "2:1: a history is of a table",
            "write table: shop.customers",
        ),
        (
            HISTORY.replace("shop.customers", "customers"),
            "3:1: table: write schema.table: shop.customers",
            "correct the value",
        ),
        (
            HISTORY.replace("track:", "key: [id]\ntrack:"),
            "4:1: key is no key of histories",
            "remove it",
        ),
        (
            "/* ---\ntrack: [tier]\n--- */\nSELECT id FROM shop.customers",
            "2:1: track is a key of histories only",
            "remove it, or write kind: history",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(text: str, message: str, remedy: str) -> None:
    found = problem(text)

    assert str(found) == f"marts.sales.sql:{message}"
    assert found.remedy == remedy


def test_only_captured_tables_have_a_history(tmp_path: Path) -> None:
    (tmp_path / "marts.past.sql").write_text(HISTORY.replace("shop.customers", "marts.sums"))
    (tmp_path / "marts.lost.sql").write_text(HISTORY.replace("customers", "custmers"))
    (tmp_path / "marts.sums.sql").write_text("SELECT tier FROM shop.customers")

    found = declared(tmp_path, [TableId("shop", "customers")])

    assert [one.table.name for one in found.definitions] == ["sums"]
    told = [(Path(one.file).name, one.message, one.remedy) for _, one in found.problems]
    assert told == [
        ("marts.lost.sql", "no table shop.custmers", "did you mean shop.customers?"),
        (
            "marts.past.sql",
            "marts.sums is a derived table, and a history is of a captured one",
            "name a captured table",
        ),
    ]
