"""A history equals its table at every kept cut, and is the same when it is made anew."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import cdc
from cdc.derive.history.history import OWN, at_lsn
from cdc.lake.layout import ledger_under
from cdc.lake.records.ledger import Ledger, LedgerRow
from tests.derived.conftest import define
from tests.e2e.installation import Installation
from tests.e2e.workload import Workload

pytestmark = pytest.mark.e2e

HISTORIES: Final[Mapping[str, str]] = {
    "marts.accounts_past": "/* ---\nkind: history\ntable: bank.accounts\n--- */\n",
    "marts.documents_past": (
        "/* ---\nkind: history\ntable: bank.documents\ntrack: [revision, tags]\n--- */\n"
    ),
}
OVER_ONE: Final = (
    "SELECT h.id, count(*) AS versions, max(h._from_lsn) AS last FROM marts.accounts_past AS h "
    "GROUP BY h.id"
)


def stored(installation: Installation, table: str, where: str = "true") -> list[dict[str, Any]]:
    """Return rows of a derived table's newest version, without wal2lake's columns."""
    opened = DeltaTable(f"{installation.folder}/lake/{table.replace('.', '/')}")
    names = [f'"{f.name}"' for f in opened.schema().fields if not f.name.startswith("_cdc_")]
    query = f"SELECT {', '.join(names)} FROM t WHERE {where}"
    found = QueryBuilder().register("t", opened).execute(query).read_all()
    return sorted(pa.table(found).to_pylist(), key=repr)


def at(installation: Installation, table: str, row: LedgerRow) -> list[dict[str, Any]]:
    lake = str(installation.folder / "lake")
    found = cdc.read(table, at=row, lake=lake).read_all().to_pylist()
    rows = ({n: v for n, v in each.items() if not n.startswith("_cdc_")} for each in found)
    return sorted(rows, key=repr)


def past(installation: Installation, table: str, row: LedgerRow) -> list[dict[str, Any]]:
    """Return what the history, as it is now, has of the table at a cut."""
    found = stored(installation, table, at_lsn(row.epoch, row.lsn))
    return sorted(({n: v for n, v in each.items() if n not in OWN} for each in found), key=repr)


def tracked(rows: list[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the columns of which a past version has the values of its time; all by default."""
    some = ({n: v for n, v in each.items() if n in names or not names} for each in rows)
    return sorted(some, key=repr)


def test_it_is_its_table_at_every_cut_and_the_same_when_made_anew(derived: Installation) -> None:
    define(derived, {**HISTORIES, "marts.account_versions": OVER_ONE})
    ledger = Ledger(ledger_under(f"{derived.folder}/lake"))
    derived.run("sync", "--timeout", "900")
    begun = ledger.last()
    assert begun is not None
    with Workload(derived.source_url, seed=44) as workload:
        workload.await_commits(150)
    derived.execute("UPDATE bank.documents SET revision = revision + 1 WHERE id % 3 = 0")
    derived.run("sync", "--timeout", "900")
    cuts = [row for row in ledger.rows(after=begun.cut) if row.lsn is not None]

    compared = 0
    for table, history, names in (
        ("bank.accounts", "marts.accounts_past", []),
        ("bank.documents", "marts.documents_past", ["id", "revision", "tags"]),
    ):
        for row in cuts[:: max(1, len(cuts) // 10)] + cuts[-1:]:
            found = past(derived, history, row)
            assert tracked(found, names) == tracked(at(derived, table, row), names)
            compared += 1
    assert compared > 2
    assert len(stored(derived, "marts.documents_past", "_to_lsn IS NOT NULL")) > 0

    verdicts = derived.facts("derived", "verify", *HISTORIES, "marts.account_versions")
    assert [verdict["equal"] for verdict in verdicts["tables"]] == [True] * 3
    whole = {name: stored(derived, name) for name in HISTORIES}
    for name in HISTORIES:
        derived.run("derived", "rebuild", name)
        assert stored(derived, name, f"_from_lsn <= {cuts[-1].lsn}") == whole[name]
    for name in (*HISTORIES, "marts.account_versions"):
        (derived.folder / "derived" / f"{name}.sql").unlink()
    derived.run("apply-config")


SHAPED: Final[Mapping[str, str]] = {
    "marts.shaped_past": "/* ---\nkind: history\ntable: bank.shaped\ntrack: [n]\n--- */\n",
    "marts.all_past": "/* ---\nkind: history\ntable: bank.shaped\n--- */\n",
}


def reasons(installation: Installation) -> dict[str, str]:
    listed = json.loads(installation.run("derived", "list", "--json"))
    return {entry["table"]: entry["reason"] for entry in listed if entry["table"] in SHAPED}


def test_it_goes_on_beside_an_added_column_and_stops_at_another_one(derived: Installation) -> None:
    derived.execute(
        "CREATE TABLE bank.shaped (id int PRIMARY KEY, word text, n int);"
        "INSERT INTO bank.shaped SELECT i, 'word ' || i, i FROM generate_series(1, 20) i"
    )
    define(derived, SHAPED)
    derived.run("sync", "--timeout", "900")
    derived.execute(
        "ALTER TABLE bank.shaped ADD COLUMN more int DEFAULT 5;"
        "UPDATE bank.shaped SET n = n + 1, more = 6 WHERE id % 3 = 0;"
        "INSERT INTO bank.shaped VALUES (21, 'new', 0, 7)"
    )
    derived.done("sync", "--timeout", "900")

    found = reasons(derived)
    assert found["marts.shaped_past"] == ""
    assert "bank.shaped has a column more, which its history has not" in found["marts.all_past"]
    assert derived.facts("derived", "verify", "marts.shaped_past")["equal"]
    before = stored(derived, "marts.shaped_past")
    assert len(before) == 20 + 6 + 1
    assert set(before[0]) == {"id", "word", "n", *OWN}
    derived.run("derived", "rebuild", "marts.shaped_past")
    assert stored(derived, "marts.shaped_past") == before

    # The column that is last has its old name and type again, and other values without an event.
    derived.execute("ALTER TABLE bank.shaped DROP COLUMN n; ALTER TABLE bank.shaped ADD n int")
    derived.execute("UPDATE bank.shaped SET word = 'other' WHERE id = 1")
    derived.done("sync", "--timeout", "900")

    assert "bank.shaped has another column n" in reasons(derived)["marts.shaped_past"]
    assert stored(derived, "marts.shaped_past") == before
    for name in SHAPED:
        (derived.folder / "derived" / f"{name}.sql").unlink()
    derived.run("apply-config")
