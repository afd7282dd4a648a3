"""``derived explain`` says which rows a step calculates, and what the last steps took."""

from pathlib import Path

import pytest

from cdc.errors import CdcError
from tests.unit.client.derived.test_asked import BY_WHO, RICH, Asked

JOINED = """SELECT a.id, b.who FROM shop.orders AS a
LEFT JOIN shop.orders AS b ON b.id = a.id AND b.who > a.who
WHERE EXISTS (SELECT 1 FROM shop.orders AS c WHERE c.who = a.who)"""


def test_a_scoped_table_and_a_whole_one(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    asked.define(by_who=BY_WHO, rich=RICH)
    asked.publish(5)
    asked.publish(5, 7)

    first, *rest, last = asked.run("explain", "marts.by_who").splitlines()
    assert first == "marts.by_who is scoped by (who)"
    assert rest[0].startswith("  last 2 commits: 1 scoped, ")
    assert "  3 changed rows led to 1 values of its scope key" in rest
    assert last == "  whole: it is built"
    whole = asked.run("explain", "marts.rich").splitlines()
    assert whole[0] == "marts.rich is whole: it aggregates all rows: it has no GROUP BY"
    assert "  whole: it is built" in whole


def test_a_table_of_single_rows(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    asked.define(names="SELECT a.who FROM shop.orders AS a WHERE a.id > 0")
    asked.publish(5)
    asked.publish(5, 7)

    first, second, *_ = asked.run("explain", "marts.names").splitlines()
    assert first == "marts.names is scoped by (who)"
    assert second == "  each row is made of one row of shop.orders"
    assert asked.json("explain", "marts.names")["steps"][0]["mode"] == "scoped"


def test_it_names_the_columns_that_changes_follow(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    asked.define(joined=JOINED)
    asked.publish(5)

    facts = asked.json("explain", "marts.joined")
    assert facts["scope"] == ["id", "who"]
    assert facts["links"] == [
        "a change of shop.orders reaches the rows with b.id = a.id",
        "a change of shop.orders reaches the rows of shop.orders with c.who = a.who",
    ]
    assert [(step["mode"], step["why"]) for step in facts["steps"]] == [("whole", "it is built")]


def test_a_name_that_is_not_derived(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    asked.define(by_who=BY_WHO)
    asked.publish(5)

    with pytest.raises(CdcError, match=r"shop\.orders is not a derived table"):
        asked.run("explain", "shop.orders")
