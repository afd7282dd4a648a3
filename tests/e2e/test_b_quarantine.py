"""A corrupt message is put aside with its position, its table is marked, the others go on.

Runs after test_a_main_job.py: it leaves one table of the shared installation degraded.
"""

import json

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable, QueryBuilder

from tests.e2e.installation import Installation
from tests.e2e.workload import Workload
from tests.waiting import until

pytestmark = pytest.mark.e2e

GARBAGE = b"\x01 this is no Avro"
UNKNOWN_SCHEMA = b"\x00\x7f\xff\xff\xff and no such id"


def _produce(installation: Installation, topic: str, values: list[bytes]) -> list[int | None]:
    """Write the values as a stranger would; their offsets."""
    recorded = json.loads((installation.state_dir / "endpoints.json").read_text())
    producer = Producer({"bootstrap.servers": recorded["kafka"]})
    offsets: list[int | None] = []
    for value in values:
        producer.produce(
            topic,
            key=b"stranger",
            value=value,
            on_delivery=lambda error, message: offsets.append(-1 if error else message.offset()),
        )
    producer.flush(30)
    return offsets


def test_corrupt_messages_are_put_aside_and_the_other_tables_go_on(
    installation: Installation,
) -> None:
    offsets = _produce(installation, "wal2lake.bank.victim", [GARBAGE, UNKNOWN_SCHEMA])
    assert -1 not in offsets
    with Workload(installation.source_url, seed=30) as workload:
        workload.await_commits(50)
    installation.execute("UPDATE bank.victim SET value = 'later' WHERE id = 5")

    printed = installation.run("sync", "--timeout", "900", expect=8)

    assert "bank.victim" in printed
    installation.assert_equal()  # the other tables
    installation.assert_equal("victim")  # and its own later events are not lost
    quarantine = DeltaTable(str(installation.folder / "lake" / "_wal2lake" / "quarantine"))
    query = 'SELECT "table", topic, "offset", value, reason FROM q ORDER BY "offset"'
    found = QueryBuilder().register("q", quarantine).execute(query).read_all()
    rows = pa.table(found).to_pylist()
    assert [(row["table"], row["offset"], row["value"]) for row in rows] == [
        ("bank.victim", offsets[0], GARBAGE),
        ("bank.victim", offsets[1], UNKNOWN_SCHEMA),
    ]
    assert all(row["reason"] for row in rows)


def test_status_shows_which_table_is_degraded(installation: Installation) -> None:
    tables = {table["table"]: table for table in installation.facts("status")["tables"]}

    assert tables["bank.victim"]["state"] == "degraded"
    assert tables["bank.victim"]["refused"] == 2
    assert tables["bank.accounts"]["state"] == "streaming"
    until(lambda: installation.done("status", "--check").returncode == 8)
    assert "table bank.victim is degraded" in installation.run("status", "--check", expect=8)
    assert installation.run("status", "--live").strip() == "all is well"  # the container's check
