"""Test that values which the connector can no longer read stop only their table, by themselves."""

import pytest

from tests.e2e.installation import Installation
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep]

CHANGE = """
BEGIN;
INSERT INTO shop.lines VALUES (500, 1, 'abc');
ALTER TABLE shop.lines ALTER what TYPE int USING length(what);
COMMIT;
INSERT INTO shop.lines VALUES (501, 1, 501);
UPDATE shop.orders SET amount = amount + 1 WHERE id = 250
"""


def test_only_the_retyped_table_stops_and_a_resnapshot_restores_it(shop: Installation) -> None:
    shop.run("sync")
    shop.execute(CHANGE)

    until(lambda: "a change arrived without" in _reason(shop), 300)
    shop.run("sync", expect=8)
    verified = {t["table"]: t for t in shop.any_facts("verify")["tables"]}
    assert [name for name, verdict in verified.items() if not verdict["equal"]] == ["shop.lines"]

    shop.run("resnapshot", "shop.lines")
    shop.execute("UPDATE shop.lines SET what = what + 1")
    shop.run("sync")
    assert shop.facts("verify")["equal"]
    shop.run("down")
    shop.run("up", "--detach")
    shop.execute("UPDATE shop.lines SET what = what + 1")
    shop.run("sync")
    assert shop.facts("verify")["equal"]


def _reason(shop: Installation) -> str:
    tables = {t["table"]: t for t in shop.any_facts("status")["tables"]}
    return str(tables["shop.lines"]["reason"])
