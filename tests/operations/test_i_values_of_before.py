"""Test that values which the connector can no longer read stop only their table, by themselves."""

import pytest

from tests.e2e.installation import Installation
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep]

CHANGE = """
BEGIN;
INSERT INTO shop.places VALUES (500, 'abc');
ALTER TABLE shop.places ALTER name TYPE int USING length(name);
COMMIT;
INSERT INTO shop.places (id, name) VALUES (501, 501);
UPDATE shop.orders SET amount = amount + 1 WHERE id = 250
"""


def test_only_the_retyped_table_stops_and_a_resnapshot_restores_it(shop: Installation) -> None:
    shop.run("sync")
    shop.execute(CHANGE)

    until(lambda: "a change arrived without" in _reason(shop), 300)
    shop.run("sync", expect=8)
    verified = {t["table"]: t for t in shop.any_facts("verify")["tables"]}
    assert [name for name, verdict in verified.items() if not verdict["equal"]] == ["shop.places"]

    shop.run("resnapshot", "shop.places")
    shop.execute("UPDATE shop.places SET name = name + 1")
    shop.run("sync")
    assert shop.facts("verify")["equal"]
    shop.run("down")
    shop.run("up", "--detach")
    shop.execute("UPDATE shop.places SET name = name + 1")
    shop.run("sync")
    assert shop.facts("verify")["equal"]


def _reason(shop: Installation) -> str:
    tables = {t["table"]: t for t in shop.any_facts("status")["tables"]}
    return str(tables["shop.places"]["reason"])
