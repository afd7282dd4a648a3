"""Test adding and removing tables while others stream, and repairing a refused event."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
import yaml

from tests.e2e.installation import Installation
from tests.meanwhile import meanwhile
from tests.operations.asked import last_line, read_by
from tests.unpublished import unseen

pytestmark = [pytest.mark.e2e, pytest.mark.deep]

KEPT: Final = tuple(
    f"shop.{name}" for name in ("orders", "lines", "stock", "prices", "places", "pictures")
)


@contextmanager
def tables_of(installation: Installation) -> Iterator[list[str]]:
    """Yield the list ``source.tables``; write the configuration back after the block."""
    path = installation.folder / "wal2lake.yaml"
    written = yaml.safe_load(path.read_text())
    yield written["source"]["tables"]
    path.write_text(yaml.safe_dump(written))


def states(installation: Installation) -> dict[str, str]:
    """Return the tables' states, by name."""
    return {t["table"]: t["state"] for t in installation.facts("status")["tables"]}


def test_a_table_is_added_and_another_removed_while_both_are_written(shop: Installation) -> None:
    shop.execute(
        "CREATE SCHEMA more; CREATE TABLE more.parts (id serial PRIMARY KEY, at timestamptz, n int)"
    )
    shop.execute("INSERT INTO more.parts (at, n) SELECT now(), i FROM generate_series(1, 500) i")
    with tables_of(shop) as tables:
        tables[:] = [*KEPT, "more.parts"]
    planned = shop.facts("plan")
    assert [table["table"] for table in planned["added"]] == ["more.parts"]
    assert [table["table"] for table in planned["removed"]] == ["shop.visits"]
    before = shop.facts("status")["cut"]

    insert = "INSERT INTO more.parts (at, n) VALUES (now(), -1); UPDATE shop.stock SET amount = 1"
    with shop.connect() as connection, meanwhile(lambda: connection.execute(insert)):
        shop.run("apply-config")

    shop.run("sync")
    assert states(shop)["more.parts"] == "streaming"
    assert "shop.visits" not in states(shop)
    assert shop.facts("verify")["equal"]
    assert shop.facts("status")["cut"] > before
    assert (shop.folder / "lake" / "shop" / "visits").is_dir()
    assert shop.run("plan") == "no changes\n"


def test_a_removed_table_is_purged_by_its_name(shop: Installation) -> None:
    assert "remedy" in shop.run(
        "apply-config", "--purge", "shop.stock", "--confirm", "shop.stock", expect=2
    )

    shop.run("apply-config", "--purge", "shop.visits", "--confirm", "shop.visits")

    assert not (shop.folder / "lake" / "shop" / "visits").exists()
    assert shop.facts("verify")["equal"]


def test_a_refused_event_is_shown_and_its_row_read_again(shop: Installation) -> None:
    shop.execute("UPDATE shop.orders SET placed = 'infinity' WHERE id = 210")
    assert "shop.orders: refused events in quarantine: 1" in shop.run("sync", expect=8)
    (event,) = json.loads(shop.done("quarantine", "list", "--json").stdout)
    assert "year" in event["reason"]
    assert str(event["offset"]) in shop.run(
        "quarantine", "show", "shop.orders", str(event["offset"])
    )
    # The row is repaired in the source without an event, so that no later event replaces it.
    mended = "UPDATE shop.orders SET placed = '2024-02-29' WHERE id = 210"
    shop.execute(unseen("shop.orders", mended))

    done = last_line(shop, "quarantine", "retry", "shop.orders")

    assert done["results"][0]["rows_read"] == 1
    assert read_by(shop)["shop.orders"] == "job"
    shop.run("sync")
    assert states(shop)["shop.orders"] == "streaming"
    assert shop.facts("verify")["equal"]
