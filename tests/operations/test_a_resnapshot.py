"""A table that differs from its source is read again; nothing else rests meanwhile."""

from typing import Any

from tests.e2e.installation import Installation
from tests.operations.blind import unseen

BLIND = """
DELETE FROM shop.orders WHERE id BETWEEN 1 AND 100;
UPDATE shop.orders SET customer = 'somebody', body = repeat('n', 5000) WHERE id BETWEEN 101 AND 160;
UPDATE shop.orders SET id = 1000 WHERE id = 161;
INSERT INTO shop.orders SELECT i, 'new', 0, NULL, '', '{}' FROM generate_series(2001, 2006) i;
DELETE FROM shop.visits WHERE ctid IN (SELECT ctid FROM shop.visits LIMIT 15);
INSERT INTO shop.visits VALUES ('v1', 1), ('v1', 1), ('new', NULL);
"""


def result(facts: dict[str, Any], table: str) -> dict[str, Any]:
    found: dict[str, Any] = next(r for r in facts["results"] if r["table"] == table)
    return found


def last_line(installation: Installation, *arguments: str) -> dict[str, Any]:
    """What a command with --json says at its end."""
    return Installation._parsed(installation.run(*arguments, "--json").splitlines()[-1])


def test_rows_that_vanished_unseen_are_swept(shop: Installation) -> None:
    with unseen(shop, "shop.orders", "shop.visits"):
        shop.execute(BLIND)
    assert not shop.any_facts("verify")["equal"]

    done = last_line(shop, "resnapshot", "shop.orders", "shop.visits")

    orders = result(done, "shop.orders")
    assert (orders["swept"], orders["changed"], orders["added"]) == (101, 60, 7)
    assert result(done, "shop.visits")["rows_read"] == 188
    assert shop.facts("verify")["equal"]


def test_only_the_rows_inside_a_predicate_are_put_right(shop: Installation) -> None:
    with unseen(shop, "shop.lines"):
        shop.execute("DELETE FROM shop.lines WHERE order_id IN (5, 50)")
        shop.execute("UPDATE shop.lines SET order_id = 500 WHERE order_id = 6")

    done = last_line(shop, "resnapshot", "shop.lines", "--where", "order_id <= 10")

    lines = result(done, "shop.lines")
    assert (lines["swept"], lines["changed"], lines["added"]) == (6, 0, 0)
    table = next(t for t in shop.any_facts("verify")["tables"] if t["table"] == "shop.lines")
    assert (table["comparison"]["missing"], table["comparison"]["extra"]) == (3, 3)
    shop.run("resnapshot", "shop.lines")
    assert shop.facts("verify")["equal"]
