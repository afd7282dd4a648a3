"""Commands on derived tables know folds too."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc.client.derived.at_source import refused_by_source
from cdc.config import load
from cdc.derive.definition.declared import declared
from cdc.errors import CdcError
from cdc.tables import TableId
from tests.unit.client.derived.test_asked import Asked

SUMS = """\
table = {
    "events": "shop.orders",
    "stream": "who",
    "version": "id",
    "first": 0,
    "columns": {"total": "numeric(20,2)"},
}


def apply(state, event):
    if event["amount"] < 0:
        raise Refused("it is negative")
    return {"total": (state["total"] if state else 0) + event["amount"]}
"""
OVER_IT = "SELECT count(*) AS n FROM marts.sums__faults"


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    asked = Asked(tmp_path)
    asked.define(over_it=OVER_IT)
    write(asked, SUMS)
    return asked


def write(asked: Asked, text: str, name: str = "marts.sums.py") -> Path:
    path = asked.folder / "derived" / name
    path.write_text(text)
    return path


def test_a_fold_is_checked_listed_previewed_and_verified_like_any_table(asked: Asked) -> None:
    asked.publish(5, 7, -1, 2)
    asked.publish(5, 7, 1, 2)

    checked = {one["table"]: one for one in asked.json("check")["tables"]}
    sums, faults = checked["marts.sums"], checked["marts.sums__faults"]

    assert sums["columns"] == {"who": "VARCHAR", "version": "BIGINT", "total": "DECIMAL(20,2)"}
    assert faults["columns"] == {
        "who": "VARCHAR", "version": "BIGINT", "fault": "VARCHAR", "detail": "VARCHAR",
    }  # fmt: skip
    assert checked["marts.over_it"]["inputs"] == ["marts.sums__faults"]
    listed = json.loads(asked.run("list", "--json"))
    assert {one["table"]: one["rows"] for one in listed} == {
        "marts.sums": 1,
        "marts.sums__faults": 0,
        "marts.over_it": 1,
    }
    assert asked.json("preview", "marts.sums", "--at", "1")["rows"] == [
        {"who": "a", "version": 1, "total": "12.00"}
    ]
    assert asked.json("preview", "marts.sums__faults", "--at", "1")["rows"] == [
        {"who": "a", "version": 2, "fault": "refused", "detail": "it is negative"}
    ]
    assert asked.json("preview", "marts.over_it", "--at", "1")["rows"] == [{"n": 1}]
    assert asked.json("preview", "marts.sums")["rows"] == [
        {"who": "a", "version": 3, "total": "15.00"}
    ]
    assert asked.json("verify")["equal"] is True


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"who"', '"whom"', "marts.sums.py:1:1: shop.orders has no column whom"),
        ('"id"', '"amount"', "version names amount, which is of type decimal(10,2)"),
        ("shop.orders", "shop.order", "marts.sums.py:2:15: no table shop.order"),
        ("\n\ndef", "\nX = 1 / 0\ndef", "line 9 fails outside apply: ZeroDivisionError"),
        ("if event[", "if open[", "marts.sums.py:11:8: open is refused in a fold"),
    ],
)
def test_check_tells_each_problem_of_a_fold_once(
    asked: Asked, old: str, new: str, problem: str
) -> None:
    asked.publish(1)
    write(asked, SUMS.replace(old, new))

    found = asked.json("check", expect=2)["problems"]

    told = [f"{Path(str(p['file'])).name}:{p['line']}:{p['column']}: {p['message']}" for p in found]
    (of_fold,) = [each for each in told if not each.startswith("marts.over_it")]
    assert problem in of_fold


def test_a_refused_fold_stops_both_of_its_tables(asked: Asked) -> None:
    good = asked.publish(1, 2)
    write(asked, SUMS.replace('"who"', "who"))

    entries = {entry.table: entry for entry in asked.publish(1, 2).derived}

    assert {name: entry.state for name, entry in entries.items()} == dict.fromkeys(
        ["marts.sums", "marts.sums__faults", "marts.over_it"], "stopped"
    )
    before = good.derived_entry("marts.sums__faults")
    assert before is not None
    assert entries["marts.sums__faults"].version == before.version


@pytest.mark.parametrize("name", ["marts.sums.sql", "marts.sums__faults.sql"])
def test_a_query_of_the_same_name_is_refused_and_so_is_the_fold(asked: Asked, name: str) -> None:
    write(asked, "SELECT count(*) AS n FROM shop.orders", name)
    asked.publish(1)

    problems = asked.json("check", expect=2)["problems"]

    table = name.removesuffix(".sql")
    told = {Path(str(p["file"])).name: p["message"] for p in problems}
    assert told[name].startswith(f"{table} is defined in ")
    assert told[name].endswith("marts.sums.py too")
    assert told["marts.sums.py"].endswith(f"{name} too")


def test_a_fold_over_its_own_faults_is_a_circle(asked: Asked) -> None:
    write(asked, SUMS.replace("shop.orders", "marts.sums__faults"))

    found = declared(asked.folder / "derived", None)

    assert "the tables read each other" in found.distinct_problems[0].message
    assert [str(table) for table, _ in found.problems] == [
        "marts.sums", "marts.sums__faults", "marts.over_it",
    ]  # fmt: skip


def test_the_tables_of_a_fold_are_dropped_when_its_file_is_gone(asked: Asked) -> None:
    (asked.folder / "derived" / "marts.over_it.sql").unlink()
    asked.publish(5)
    names = ("marts.sums", "marts.sums__faults")
    for name in names:
        with pytest.raises(CdcError, match=r"is defined in .*marts\.sums\.py"):
            asked.run("drop", name, "--confirm", name)

    (asked.folder / "derived" / "marts.sums.py").unlink()
    asked.publish(6)

    for name in names:
        asked.run("drop", name, "--confirm", name)
        path = asked.folder / "lake" / name.replace(".", "/")
        assert not DeltaTable.is_deltatable(str(path))


def test_the_source_is_not_asked_for_folds(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has none; a table over one cannot be calculated there either, and is named."""
    row = asked.publish(1, 2)
    report = asked.by_a_source(row, monkeypatch)

    reason = "the source cannot calculate folds, as {} is: verify it locally"
    assert {one.table: one.reason for one in report.tables} == {
        "marts.sums": reason.format("marts.sums"),
        "marts.sums__faults": reason.format("marts.sums__faults"),
        "marts.over_it": reason.format("marts.sums__faults"),
    }
    found = declared(load(asked.file).derived.path, [TableId("shop", "orders")]).definitions
    assert len(found) == 3
    assert list(refused_by_source(None, found)) == []  # type: ignore[arg-type]
