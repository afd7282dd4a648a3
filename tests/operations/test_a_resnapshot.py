"""Test reading a differing table again while everything else goes on."""

import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.e2e.installation import Installation
from tests.meanwhile import meanwhile
from tests.operations.asked import last_line, read_by, result
from tests.operations.blind import unseen

pytestmark = pytest.mark.e2e

BLIND = """
DELETE FROM shop.orders WHERE id BETWEEN 1 AND 100;
UPDATE shop.orders SET customer = 'somebody', body = repeat('n', 5000) WHERE id BETWEEN 101 AND 160;
UPDATE shop.orders SET id = 1000 WHERE id = 161;
INSERT INTO shop.orders SELECT i, 'new', 0, NULL, '', '{}' FROM generate_series(2001, 2006) i;
DELETE FROM shop.visits WHERE ctid IN (SELECT ctid FROM shop.visits LIMIT 15);
INSERT INTO shop.visits VALUES ('v1', 1), ('v1', 1), ('new', NULL);
DELETE FROM shop.pictures WHERE id <= 9;
UPDATE shop.pictures SET picture = 'none' WHERE id = 10;
"""
STOPPING = """
ALTER TABLE shop.stock ADD COLUMN lot double precision DEFAULT random();
ALTER TABLE shop.prices ALTER COLUMN price TYPE text USING 'about ' || price;
DROP TABLE shop.places;
CREATE TABLE shop.places (id int PRIMARY KEY, name text, note text);
INSERT INTO shop.places SELECT i, 'again ' || i, NULL FROM generate_series(1, 9) i;
ALTER PUBLICATION wal2lake ADD TABLE shop.places;
"""

MOVING = """
UPDATE shop.orders SET amount = amount + CASE id WHEN 201 THEN 1 ELSE -1 END WHERE id IN (201, 202)
"""


def test_rows_deleted_without_an_event_are_swept(shop: Installation) -> None:
    tables = ("shop.orders", "shop.visits", "shop.pictures")
    with unseen(shop, *tables):
        shop.execute(BLIND)
    assert not shop.any_facts("verify")["equal"]

    done = last_line(shop, "resnapshot", *tables)

    orders, visits, pictures = (result(done, table) for table in tables)
    assert (orders["swept"], orders["changed"], orders["added"]) == (101, 60, 7)
    assert visits["rows_read"] == 188
    assert visits["swept"] - visits["added"] == 12
    assert (pictures["swept"], pictures["changed"], pictures["added"]) == (9, 1, 0)
    assert read_by(shop) == {"shop.orders": "job", "shop.visits": "job", "shop.pictures": "Spark"}
    assert shop.facts("verify")["equal"]


def test_only_the_rows_inside_a_predicate_are_repaired(shop: Installation) -> None:
    with unseen(shop, "shop.lines"):
        shop.execute("DELETE FROM shop.lines WHERE order_id IN (5, 50)")
        shop.execute("UPDATE shop.lines SET what = 'moved' WHERE order_id = 7")
        shop.execute("UPDATE shop.lines SET weight = 9000 WHERE order_id = 8")

    done = last_line(shop, "resnapshot", "shop.lines", "--where", "order_id <= 10 and weight < 100")

    lines = result(done, "shop.lines")
    assert (lines["swept"], lines["changed"], lines["added"]) == (3, 6, 0)
    table = next(t for t in shop.any_facts("verify")["tables"] if t["table"] == "shop.lines")
    comparison = table["comparison"]
    assert (comparison["missing"], comparison["extra"], comparison["changed"]) == (0, 3, 0)
    shop.run("resnapshot", "shop.lines")
    assert shop.facts("verify")["equal"]


def test_a_reader_of_a_shadow_sees_the_old_table_or_the_new_one(shop: Installation) -> None:
    """Meanwhile the stream changes two rows, whose sum must stay constant in every version."""
    with unseen(shop, "shop.orders"):
        shop.execute("DELETE FROM shop.orders WHERE id > 250")
        shop.execute("UPDATE shop.orders SET amount = 500 WHERE id IN (201, 202)")
    before = counts(shop)["rows"]

    seen: list[dict[str, int]] = []
    with (
        shop.connect() as connection,
        meanwhile(lambda: connection.execute(MOVING)),
        meanwhile(lambda: seen.append(counts(shop))),
    ):
        done = last_line(shop, "resnapshot", "shop.orders", "--shadow")
    shop.run("sync")

    after = before - result(done, "shop.orders")["swept"]
    assert before > after
    assert {count["rows"] for count in seen} == {before, after}
    sums = {count["moving"] for count in seen if count["rows"] == after}
    assert sums == {1000}
    assert shop.facts("verify")["equal"]


def test_stopped_tables_are_read_and_follow_again(shop: Installation) -> None:
    shop.execute(STOPPING)
    shutil.rmtree(shop.folder / "lake" / "shop" / "lines")
    shop.execute("INSERT INTO shop.orders VALUES (9001, 'goes on', 1, NULL, '', '{}')")
    shop.run("sync", expect=8)
    states = {t["table"]: t["state"] for t in shop.facts("status")["tables"]}
    assert {name for name, state in states.items() if state == "stopped"} == {
        "shop.stock",
        "shop.prices",
        "shop.places",
        "shop.lines",
    }

    shop.run("resnapshot", "--stopped")

    shop.execute("UPDATE shop.lines SET weight = weight + 1 WHERE place = 2")

    shop.execute("UPDATE shop.stock SET amount = amount + 1")
    shop.execute("UPDATE shop.prices SET price = 'exactly ' || id")
    shop.execute("DELETE FROM shop.places WHERE id = 3")
    shop.run("sync")
    assert shop.facts("verify")["equal"]
    shop.crash("job")
    shop.run("sync")
    assert shop.facts("verify")["equal"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("shop.ordres",), 2, "did you mean shop.orders"),
        (("shop.orders", "--where", "custmer = 'a'"), 2, "customer"),
        (("shop.orders", "--where", "id = 1; drop table shop.orders"), 2, "remedy"),
        (("shop.orders", "--where", "id = 'a'"), 2, "id"),
        (("shop.orders", "shop.lines", "--where", "id = 1"), 2, "one table"),
        (("other.table",), 2, "no table other.table"),
    ],
)
def test_invalid_names_and_conditions_are_refused(
    shop: Installation, arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert words in shop.run("resnapshot", *arguments, expect=code)


def test_a_dry_run_lists_what_would_be_read_and_reads_nothing(shop: Installation) -> None:
    facts = shop.facts("resnapshot", "shop.orders", "--where", "id < 200", "--dry-run")

    assert facts["where"] == "id < 200"
    assert facts["tables"][0]["table"] == "shop.orders"
    assert facts["seconds"] is not None
    commands = [row["command"] for row in shop_operations(shop)]
    assert commands == ["snapshot", *["resnapshot"] * 5]


def shop_operations(installation: Installation) -> list[dict[str, object]]:
    """Return the operations, read by delta-rs instead of the command."""
    table = DeltaTable(str(installation.folder / "lake" / "_wal2lake" / "operations"))
    answer = QueryBuilder().register("t", table).execute("SELECT * FROM t ORDER BY id").read_all()
    rows: list[dict[str, object]] = pa.table(answer).to_pylist()
    return rows


def counts(installation: Installation) -> dict[str, int]:
    """Return the number of orders and the sum of the two that the stream changes."""
    table = DeltaTable(str(installation.folder / "lake" / "shop" / "orders"))
    query = """SELECT count(*) AS rows,
      CAST(sum(CASE WHEN id IN (201, 202) THEN amount ELSE 0 END) AS bigint) AS moving FROM t"""
    answer = pa.table(QueryBuilder().register("t", table).execute(query).read_all())
    row: dict[str, int] = answer.to_pylist()[0]
    return row
