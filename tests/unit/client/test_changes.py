"""What has changed between two cuts is what their rows differ by, of any table."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

import cdc
from cdc.cli import app
from cdc.errors import CdcError, ErrorKind
from tests.unit.client.derived.test_asked import BY_WHO, Asked

SHOP, DERIVED = "shop.orders", "marts.by_who"


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """Three cuts of orders and of a derived table over them."""
    made = Asked(tmp_path)
    made.define(by_who=BY_WHO)
    for amounts in ((5, 7), (5, 8), (5, 8, 8)):
        made.publish(*amounts)
    return made


def changed(asked: Asked, table: str, since: int, at: int | None = None) -> list[tuple[str, ...]]:
    """Return every changed row as texts, its change first."""
    found = cdc.changes(table, since=since, at=at, lake=asked.folder / "lake").to_pylist()
    return sorted((str(row.pop("_cdc_change")), *map(str, row.values())) for row in found)


def test_an_update_is_one_row_gone_and_one_new(asked: Asked) -> None:
    assert changed(asked, SHOP, 1, 2) == [
        ("added", "1", "a", "8.00"),
        ("removed", "1", "a", "7.00"),
    ]
    assert changed(asked, SHOP, 2) == [("added", "2", "a", "8.00")]
    assert changed(asked, SHOP, 3) == []


def test_a_derived_table_is_read_in_the_same_way(asked: Asked) -> None:
    assert changed(asked, DERIVED, 1) == [("added", "a", "21.00"), ("removed", "a", "12.00")]
    assert changed(asked, DERIVED, 2) == [("added", "a", "21.00"), ("removed", "a", "13.00")]


def test_the_command_prints_them(asked: Asked) -> None:
    arguments = ["changes", DERIVED, "--since", "1", "--json", "--config", str(asked.file)]
    ran = CliRunner().invoke(app, arguments)

    assert ran.exit_code == 0, ran.output
    assert [json.loads(line) for line in ran.output.splitlines()] == [
        {"who": "a", "total": "12.00", "_cdc_change": "removed"},
        {"who": "a", "total": "21.00", "_cdc_change": "added"},
    ]


def test_what_is_not_known_is_said(asked: Asked) -> None:
    path = str(asked.folder / "lake" / "shop" / "orders")
    DeltaTable(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    with pytest.raises(CdcError, match=r"changed in shop\.orders since cut 1 is not known") as gone:
        changed(asked, SHOP, 1)
    assert gone.value.kind is ErrorKind.CONFIG


def test_a_table_that_was_made_anew_has_other_versions(asked: Asked) -> None:
    path = str(asked.folder / "lake" / "shop" / "orders")
    rows = DeltaTable(path).to_pyarrow_table()
    shutil.rmtree(path)
    for _ in range(3):
        write_deltalake(path, rows, mode="overwrite")

    with pytest.raises(CdcError, match="is not known"):
        changed(asked, SHOP, 1)


def test_a_derived_table_that_was_dropped_and_declared_again_is_another(asked: Asked) -> None:
    declared = asked.folder / "derived" / f"{DERIVED}.sql"
    declared.unlink()
    asked.publish(5)
    asked.run("drop", DERIVED, "--confirm", DERIVED)
    declared.write_text(BY_WHO)
    for amount in (1, 2, 3):
        asked.publish(amount)

    assert changed(asked, DERIVED, 6) == [("added", "a", "3.00"), ("removed", "a", "2.00")]
    with pytest.raises(CdcError, match="is not known"):
        changed(asked, DERIVED, 2)


def test_a_table_that_a_cut_lacks_is_named(asked: Asked) -> None:
    with pytest.raises(CdcError, match=r"cut 1 has no table shop\.nothing"):
        changed(asked, "shop.nothing", 1)


def test_a_flagged_table_is_refused(asked: Asked) -> None:
    asked.lake.states["orders"] = "stopped"
    asked.publish(1)

    with pytest.raises(CdcError) as stopped:
        changed(asked, SHOP, 1)
    assert stopped.value.kind is ErrorKind.TABLE_STOPPED


def test_rows_are_counted(tmp_path: Path) -> None:
    """Equal rows are as many changes as there are of them."""
    asked = Asked(tmp_path)
    asked.define(same="SELECT who FROM shop.orders")
    asked.publish(1, 2)
    asked.publish(1, 2, 3, 4)

    found = cdc.changes("marts.same", since=1, lake=tmp_path / "lake")
    assert found.equals(pa.table({"who": ["a", "a"], "_cdc_change": ["added", "added"]}))
