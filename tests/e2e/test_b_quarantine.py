"""Test that a corrupt message is quarantined with its offset and degrades only its table.

Runs after test_a_main_job.py: it leaves one table of the shared installation degraded.
"""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable, QueryBuilder

from tests.e2e.installation import Installation
from tests.e2e.workload import Workload
from tests.waiting import until

pytestmark = pytest.mark.e2e

CANARY = "canary-7f3a-of-a-row"
GARBAGE = b"\x01 this is no Avro " + CANARY.encode()
UNKNOWN_SCHEMA = b"\x00\x7f\xff\xff\xff and no such id " + CANARY.encode()
ROWS = (
    *("lake/bank", "lake/lab", "lake/_wal2lake/log", "lake/_wal2lake/quarantine"),
    *(".wal2lake/data/kafka", ".wal2lake/data/postgres", ".wal2lake/scratch/blockmgr"),
)
"""Where values of rows belong: tables, log, quarantine, topics, Spark's sort files."""


def _produce(installation: Installation, topic: str, values: list[bytes]) -> list[int | None]:
    """Produce the values as a foreign program would; return their offsets."""
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


def test_corrupt_messages_are_quarantined_and_the_other_tables_go_on(
    installation: Installation,
) -> None:
    offsets = _produce(installation, "wal2lake.bank.victim", [GARBAGE, UNKNOWN_SCHEMA])
    assert -1 not in offsets
    with Workload(installation.source_url, seed=30) as workload:
        workload.await_commits(50)
    installation.execute("UPDATE bank.victim SET value = 'later' WHERE id = 5")
    installation.execute(f"UPDATE bank.victim SET value = '{CANARY}' WHERE id = 6")

    printed = installation.run("sync", "--timeout", "900", expect=8)

    assert "bank.victim" in printed
    installation.assert_equal()  # the other tables go on
    installation.assert_equal("victim")  # and its own later events arrive
    quarantine = DeltaTable(str(installation.folder / "lake" / "_wal2lake" / "quarantine"))
    query = 'SELECT "table", topic, "offset", value, reason FROM q ORDER BY "offset"'
    answer = QueryBuilder().register("q", quarantine).execute(query).read_all()
    rows = pa.table(answer).to_pylist()
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


def test_no_value_of_a_row_leaks(installation: Installation) -> None:
    """Neither log files, settings, operations nor output contain one."""
    assert CANARY in str(installation.lake_rows("victim")), "there has to be something to find"
    outputs = [
        f"{done.stdout}{done.stderr}"
        for command in (
            ("status", "--json"),
            ("operations", "--json"),
            ("quarantine", "list"),
            ("verify", "--json"),
            ("sql", "select cast(value as int) from bank.victim"),
        )
        for done in [installation.done(*command)]
    ]
    assert not [text for text in outputs if CANARY in text]

    root = installation.folder
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    where = {path.relative_to(root).as_posix() for path in files if _holds(path)}
    assert any(name.startswith("lake/bank/victim") for name in where)
    assert sorted(name for name in where if not name.startswith(ROWS)) == []


def _holds(path: Path) -> bool:
    try:
        return CANARY.encode() in path.read_bytes()
    except FileNotFoundError:  # deleted by a running part meanwhile
        return False
