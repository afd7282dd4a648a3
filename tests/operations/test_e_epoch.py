"""The slot is lost: what was deleted meanwhile is gone from the lake afterwards."""

import pytest

from tests.e2e.installation import Installation
from tests.operations.asked import last_line

pytestmark = pytest.mark.e2e

BLIND = """
DELETE FROM shop.orders WHERE id BETWEEN 170 AND 180;
UPDATE shop.orders SET customer = 'unseen', body = repeat('u', 9000) WHERE id BETWEEN 181 AND 190;
INSERT INTO shop.orders SELECT i, 'unseen', 0, NULL, '', '{}' FROM generate_series(3001, 3004) i;
TRUNCATE shop.prices;
"""


def test_a_lost_slot_is_a_new_epoch_and_every_table_is_read_again(shop: Installation) -> None:
    shop.run("sync")
    shop.run("down")
    shop.execute("SELECT pg_drop_replication_slot('wal2lake')")
    shop.execute(BLIND)
    refused = shop.run("up", "--detach", expect=12)
    assert "--new-epoch" in refused

    shop.run("up", "--detach", "--new-epoch")
    shop.execute("UPDATE shop.orders SET customer = 'epoch 2' WHERE id = 200")
    shop.run("sync", expect=8)
    done = last_line(shop, "resnapshot", "--all")

    swept = {row["table"]: row["swept"] for row in done["results"]}
    assert swept["shop.orders"] == 11
    assert swept["shop.prices"] == 20
    shop.run("sync")
    assert shop.facts("verify")["equal"]
    shop.run("down")
    shop.run("up", "--detach")
    shop.execute("DELETE FROM shop.orders WHERE id = 200")
    shop.run("sync")
    assert shop.facts("verify")["equal"]
