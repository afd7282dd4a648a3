"""No byte of a deleted row is left in lake, topic, state directory and logs."""

import secrets
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc.lake.records.ledger import Ledger
from tests.e2e.installation import Installation
from tests.masked.traces import files_with, topics_with
from tests.operations.asked import last_line, result
from tests.unpublished import unseen
from tests.waiting import until

pytestmark = pytest.mark.e2e

TABLE = "shop.places"
BROKER_SECONDS = 180
"""The broker deletes a segment's files a minute after it has noticed that it may."""


MARTS = {
    "marts.named": "SELECT id, name FROM shop.places",
    "marts.counted": "SELECT name, count(*) AS n FROM marts.named GROUP BY name",
}
"""Derived tables that show the rows which are to be forgotten, one over the other."""


def derive(shop: Installation) -> None:
    folder = shop.folder / "derived"
    folder.mkdir()
    for name, text in MARTS.items():
        (folder / f"{name}.sql").write_text(text)
    shop.run("apply-config")
    shop.run("sync")


def walked(shop: Installation, canary: str) -> None:
    """Bring rows with the canary into log, topic, readings, files and statistics; delete them."""
    shop.execute(
        f"INSERT INTO {TABLE} SELECT i, 'neighbour ' || i FROM generate_series(800, 820) i;"
        f"INSERT INTO {TABLE} VALUES (900, '{canary} first')"
    )
    shop.run("sync")
    shop.execute(f"UPDATE {TABLE} SET name = '{canary} second' WHERE id = 900")
    shop.execute(unseen(TABLE, f"INSERT INTO {TABLE} VALUES (901, '{canary} read')"))
    shop.run("sync")
    # By Spark, whose statistics in the table's log have the values.
    read = result(last_line(shop, "resnapshot", TABLE, "--where", "id > 800"), TABLE)
    assert read["added"] == 1, read
    shop.execute(f"DELETE FROM {TABLE} WHERE id >= 900")
    shop.run("sync")


def assert_cuts_can_be_read(shop: Installation) -> None:
    rows = Ledger(f"{shop.folder}/lake/_wal2lake/ledger").rows(after=0)
    assert rows
    for row in rows:
        places = [(one.path, one.version) for one in row.tables]
        places += [(one.path, one.version) for one in row.derived]
        for path, version in places:
            files = DeltaTable(path, version=version).file_uris()
            assert all(Path(file).exists() for file in files), (row.cut, path)


def test_no_byte_of_a_forgotten_row_is_left(shop: Installation) -> None:
    canary = f"Canary{secrets.token_hex(8)}"
    derive(shop)
    walked(shop, canary)
    before = files_with(shop.folder, canary)
    for part in ("lake/shop/places/_delta_log/", "lake/shop/places/", "lake/_wal2lake/log/"):
        assert any(name.startswith(part) for name in before), (part, before)
    for name in MARTS:
        part = f"lake/{name.replace('.', '/')}/_delta_log/"
        assert any(each.startswith(part) for each in before), (part, before)
    for part in ("lake/_wal2lake/read/shop/places/", ".wal2lake/data/kafka/"):
        assert any(name.startswith(part) for name in before), (part, before)
    assert topics_with(shop.state_dir, canary)
    said = shop.run("forget", TABLE, expect=2)
    assert "is not confirmed" in said

    done = last_line(shop, "forget", TABLE, "--confirm", TABLE)

    assert done["state"] == "done", done
    assert_cuts_can_be_read(shop)
    assert topics_with(shop.state_dir, canary) == []
    left = [name for name in files_with(shop.folder, canary) if "/kafka/" not in name]
    assert left == []
    until(lambda: files_with(shop.folder, canary) == [], BROKER_SECONDS)
    verified = shop.facts("derived", "verify", "--source")
    assert all(one["equal"] for one in verified["tables"]), verified


@pytest.mark.deep
def test_what_is_left_goes_on(shop: Installation) -> None:
    shop.execute(f"INSERT INTO {TABLE} VALUES (950, 'after'); DELETE FROM {TABLE} WHERE id = 801")
    shop.run("sync")
    report = shop.facts("verify")
    assert report["equal"], report

    replayed = result(last_line(shop, "replay", TABLE), TABLE)

    assert replayed["note"] == "it was equal", replayed
    shop.run("down")
    shop.run("up", "--detach")
    shop.run("sync")
    assert shop.facts("verify")["equal"]
