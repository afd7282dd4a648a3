"""Spark calculates a derived table over its own reader, and finds what somebody wrote to it."""

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from cdc.client.derived.by_spark import compare_in_spark
from cdc.client.derived.verify import DerivedVerdict
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.lake.records.ledger import Ledger
from tests.unit.client.derived.test_asked import BY_WHO, RICH, Asked
from tests.unit.client.derived.test_cut_time_asked import HOUR, NOON, OVER, SEEN
from tests.unit.derive.events import EVENTS, read, row
from tests.unit.derive.small_lake import SmallLake

COUNTED = """\
SELECT w.who, w.window_start AS s, count(*) AS n, min(w.ts) AS least, max(w.id) AS most
FROM hop(shop.events, ts, INTERVAL '5 minutes', INTERVAL '10 minutes') AS w
GROUP BY w.who, w.window_start"""
PATTERN = """/* ---
kind: pattern
within: 1 hour
--- */
SELECT * FROM shop.events MATCH_RECOGNIZE (
  PARTITION BY who ORDER BY ts MEASURES A.id AS a, B.id AS b
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE B AS B.id > A.id)"""


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path, {"events": EVENTS})
    times = [("a", "10:00"), ("a", "10:04"), (None, "10:04"), ("é", None), ("a", "10:04")]
    lake.set(events=[row((n, who, time)) for n, (who, time) in enumerate(times)])
    return lake


def kept(lake: SmallLake, definition: Definition) -> Input:
    with closing(lake.keep(definition)) as tables:
        (entry,) = tables.entries(lake.row())
    assert entry.state == "streaming", entry
    return Input(entry.path, entry.version)


def verdict(
    spark: SparkSession, lake: SmallLake, definition: Definition, stored: Input
) -> DerivedVerdict:
    inputs = {t: Input(p := lake.path(t), DeltaTable(p).version()) for t in definition.inputs}
    return compare_in_spark(spark, definition, inputs, stored)


def test_equal_rows_are_equal(spark: SparkSession, lake: SmallLake) -> None:
    definition = read(COUNTED)

    found = verdict(spark, lake, definition, kept(lake, definition))

    assert found == DerivedVerdict(table=str(definition.table), rows=4)
    assert found.equal


def test_the_versions_of_the_cut_are_read(spark: SparkSession, lake: SmallLake) -> None:
    definition = read("SELECT e.id, e.who FROM shop.events AS e")
    stored = kept(lake, definition)
    inputs = {t: Input(p := lake.path(t), DeltaTable(p).version()) for t in definition.inputs}
    lake.set(events=[])
    DeltaTable(stored.path).delete()

    assert compare_in_spark(spark, definition, inputs, stored).rows == 5
    assert compare_in_spark(spark, definition, inputs, stored).equal


def test_copies_are_counted(spark: SparkSession, lake: SmallLake) -> None:
    """A row too few, one too many, and one that is another."""
    definition = read("SELECT e.who FROM shop.events AS e")
    stored = kept(lake, definition)
    table = DeltaTable(stored.path)
    table.delete("who = 'a' AND _cdc_copy > 1")
    table.update(updates={"who": "'b'"}, predicate="who IS NULL")
    changed = Input(stored.path, DeltaTable(stored.path).version())

    found = verdict(spark, lake, definition, changed)

    assert (found.rows, found.missing, found.extra) == (5, 3, 1)


def test_a_column_of_another_type_is_named(spark: SparkSession, lake: SmallLake) -> None:
    definition = read("SELECT e.id FROM shop.events AS e")
    path = f"{lake.folder}/other"
    write_deltalake(path, pa.table({"id": pa.array(["1"])}))

    found = verdict(spark, lake, definition, Input(path, 0))

    assert found.reason == "id is bigint in Spark and string in the lake"
    assert not found.equal


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (PATTERN, "Spark cannot calculate patterns, as marts.t is: verify it locally"),
        (
            "SELECT e.ts AT TIME ZONE 'Europe/Berlin' AS at FROM shop.events AS e",
            "Spark cannot calculate AT TIME ZONE of a timestamp without zone",
        ),
        (
            "SELECT e.id FROM shop.events AS e WHERE (e.who || 'x')::date IS NULL",
            "Spark refuses its query: CAST_INVALID_INPUT",
        ),
    ],
)
def test_what_it_refuses_has_a_name_and_no_values(
    query: str, reason: str, spark: SparkSession, lake: SmallLake
) -> None:
    definition = read(query, "t")
    path = f"{lake.folder}/stored"
    kinds = {"at": pa.timestamp("us", "UTC"), "n": pa.int64()}
    names = definition.columns or ("id",)
    fields = [pa.field(name, kinds.get(name, pa.int64())) for name in names]
    write_deltalake(path, pa.schema(fields).empty_table())

    assert verdict(spark, lake, definition, Input(path, 0)).reason == reason


@pytest.mark.usefixtures("spark")
def test_the_command_finds_a_row_that_somebody_changed(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    asked.define(by_who=BY_WHO, rich=RICH)
    row = asked.publish(5, 7)
    by_who = row.derived_entry("marts.by_who")
    assert by_who is not None
    DeltaTable(by_who.path).update(updates={"total": "1"})
    changed = replace(by_who, version=by_who.version + 1)
    others = [entry for entry in row.derived if entry is not by_who]
    forged = replace(row, cut=row.cut + 1, derived=(changed, *others))
    Ledger(f"{asked.folder}/lake/_wal2lake/ledger").append(forged)

    words = ["derived", "verify", "--engine", "spark", "--json", "--config", str(asked.file)]
    run = subprocess.run(
        [sys.executable, "-m", "cdc", *words], capture_output=True, text=True, check=False
    )

    report = json.loads(run.stdout)
    found = {t["table"]: (t["rows"], t["missing"], t["extra"]) for t in report["tables"]}
    assert (run.returncode, report["witness"], report["cut"]) == (1, "spark", forged.cut)
    assert found == {"marts.by_who": (1, 1, 1), "marts.rich": (1, 1, 1)}


@pytest.mark.usefixtures("spark")
def test_the_command_asks_with_the_time_of_the_cut(tmp_path: Path) -> None:
    """At an older cut too: a later time would find rows missing and extra."""
    asked = Asked(tmp_path)
    asked.define(looks=SEEN, over=OVER)
    for hours in range(2):
        asked.lake.committed_at = NOON + hours * HOUR
        asked.publish(5)

    words = ["derived", "verify", "--engine", "spark", "--json", "--at", "1"]
    run = subprocess.run(
        [sys.executable, "-m", "cdc", *words, "--config", str(asked.file)],
        capture_output=True,
        text=True,
        check=False,
    )

    report = json.loads(run.stdout)
    assert [(one["rows"], one["reason"]) for one in report["tables"]] == [(1, "")] * 2
    assert (report["cut"], report["equal"]) == (1, True)
