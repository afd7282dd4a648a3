"""Test replaying tables from the log and the readings kept beside it."""

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.e2e.installation import Installation
from tests.operations.asked import last_line, result

pytestmark = [pytest.mark.e2e, pytest.mark.deep]


def test_a_replay_into_another_path_is_equal_to_the_live_table(
    shop: Installation, tmp_path: Path
) -> None:
    """Its log alone would not suffice: readings added and swept rows."""
    shop.run("sync")
    for table in ("shop.orders", "shop.visits"):
        path = tmp_path / table
        found = last_line(shop, "replay", table, "--into", str(path))
        assert found["equal"] is True, found
        assert DeltaTable(str(path)).version() >= 0


def test_a_live_table_that_was_edited_by_hand_is_replaced(shop: Installation) -> None:
    path = shop.folder / "lake" / "shop" / "orders"
    shop.run("down")
    DeltaTable(str(path)).delete("id > 230")
    shutil.rmtree(shop.folder / "lake" / "shop" / "lines")
    shop.run("up", "--detach")
    states = {t["table"]: t["state"] for t in shop.facts("status")["tables"]}
    shop.execute("UPDATE shop.orders SET customer = 'meanwhile' WHERE id = 240")
    shop.run("sync", expect=8)
    states = {t["table"]: t["state"] for t in shop.facts("status")["tables"]}
    assert states["shop.orders"] == "stopped"

    done = last_line(shop, "rebuild", "--all")

    assert result(done, "shop.orders")["rows_read"] > 0
    shop.run("sync")
    assert shop.facts("verify")["equal"]
