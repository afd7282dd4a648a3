"""Commands on derived tables know patterns too."""

from pathlib import Path

import pytest

from cdc.client.derived.at_source import refused_by_source
from cdc.config import load
from cdc.derive.definition.declared import declared
from cdc.tables import TableId
from tests.unit.client.derived.test_asked import BY_WHO, Asked


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


GROWING = """\
/* ---
kind: pattern
max_partition_rows: 100
--- */
SELECT * FROM shop.orders MATCH_RECOGNIZE (
  PARTITION BY who ORDER BY id MEASURES first(id) AS began, count(*) AS n, sum(up.amount) AS total
  PATTERN (begin up+) DEFINE up AS amount > prev(amount))
"""
OVER_IT = "SELECT sum(total) AS total FROM marts.growing"


def test_a_pattern_is_checked_previewed_and_verified_like_any_table(asked: Asked) -> None:
    asked.define(growing=GROWING, over_it=OVER_IT)
    asked.publish(1, 5, 7, 2, 3)
    asked.publish(1, 5, 4, 2, 3)

    growing, over_it = asked.json("check")["tables"]

    assert growing["columns"] == {
        "who": "VARCHAR", "began": "BIGINT", "n": "BIGINT", "total": "DECIMAL(38,2)",
    }  # fmt: skip
    assert over_it["inputs"] == ["marts.growing"]
    assert asked.json("preview", "marts.growing", "--at", "1")["rows"] == [
        {"who": "a", "began": 0, "n": 3, "total": "12.00"},
        {"who": "a", "began": 3, "n": 2, "total": "3.00"},
    ]
    assert asked.json("preview", "marts.over_it")["rows"] == [{"total": "8.00"}]
    assert asked.json("verify")["equal"] is True


def test_check_finds_what_a_pattern_has_wrong_of_columns_and_types(asked: Asked) -> None:
    asked.publish(1)
    asked.define(
        unknown=GROWING.replace("prev(amount)", "prev(amonut)"),
        types=GROWING.replace("prev(amount)", "prev(who)"),
        time=GROWING.replace("max_partition_rows: 100", "within: 1 day"),
        measure=GROWING.replace("sum(up.amount)", "sum(up.who)"),
    )

    problems = asked.json("check", expect=2)["problems"]

    found = {Path(str(p["file"])).name.split(".")[1]: p["message"] for p in problems}
    assert 'Referenced column "amonut" not found' in found["unknown"]
    assert found["types"] == "the condition of up is refused: > has a number and text"
    assert found["time"] == 'within needs a time, and ORDER BY begins with "id", which is bigint'
    assert "sum(VARCHAR)" in found["measure"]


def test_a_pattern_over_a_derived_table_is_checked(asked: Asked) -> None:
    asked.publish(1)
    asked.define(
        by_who=BY_WHO,
        growing=GROWING.replace("shop.orders", "marts.by_who")
        .replace("ORDER BY id MEASURES first(id)", "ORDER BY total MEASURES first(total)")
        .replace("amount", "total"),
    )

    assert asked.json("check")["problems"] == []


def test_the_source_is_not_asked_for_patterns(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has none; a table over one cannot be calculated there either, and is named."""
    asked.define(growing=GROWING, over_it=OVER_IT)
    row = asked.publish(1, 2)
    report = asked.by_a_source(row, monkeypatch)

    assert [(one.table, one.equal) for one in report.tables] == [
        ("marts.growing", False), ("marts.over_it", False),
    ]  # fmt: skip
    reason = "the source cannot calculate patterns, as marts.growing is: verify it locally"
    assert {one.reason for one in report.tables} == {reason}
    found = declared(load(asked.file).derived.path, [TableId("shop", "orders")]).definitions
    assert list(refused_by_source(None, found)) == []  # type: ignore[arg-type]
