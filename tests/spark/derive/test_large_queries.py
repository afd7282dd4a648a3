"""What Spark calculates as a whole is what this process would have calculated."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from cdc.config import Config, Lake, Source, load
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.large_queries import LargeQueries, large_queries
from cdc.lake.layout import aside_path, derived_aside_path, reading_path
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.operations.forget.past import remove_leftovers
from cdc.state.derived_requests import rebuilds
from cdc.tables import TableId
from tests.suites.kept import defined
from tests.suites.nexmark import events as nexmark
from tests.suites.nexmark.queries import QUERIES
from tests.unit.derive.events import EVENTS, read, row
from tests.unit.derive.small_lake import SmallLake, rows_of

BY_WHO = "SELECT e.who, count(*) AS n, max(e.tz) AS last FROM shop.events AS e GROUP BY e.who"
FLOOR = "SELECT floor(e.id::double precision)::bigint AS x FROM shop.events AS e"
TIMES = [("a", "10:00"), ("a", "10:04"), (None, "10:04"), ("é", None), ("a", "10:04")]
MANY = pa.schema(
    [
        *[("id", pa.int64()), ("b", pa.bool_()), ("i", pa.int32()), ("s", pa.int16())],
        *[("d", pa.decimal128(38, 10)), ("t", pa.string()), ("raw", pa.binary())],
        *[("day", pa.date32()), ("ts", pa.timestamp("us")), ("tz", pa.timestamp("us", "UTC"))],
    ]
)


def lake_of(folder: Path, spark: SparkSession, *, fewest: int = 0) -> SmallLake:
    lake = SmallLake(folder, {"events": EVENTS})
    lake.large = LargeQueries(session=spark, folder=f"{folder}/lake/aside", fewest=fewest)
    lake.set(events=[row((n, who, time)) for n, (who, time) in enumerate(TIMES)])
    return lake


def brought(
    lake: SmallLake, *definitions: Definition, last: Sequence[DerivedEntry] = ()
) -> list[DerivedEntry]:
    with closing(lake.keep(*definitions, last=last, full_rows=10**9)) as tables:
        entries = list(tables.entries(lake.row()))
    assert {e.table: e.reason for e in entries if e.state != "streaming"} == {}
    return entries


def cost(entry: DerivedEntry) -> Mapping[str, Any]:
    (commit,) = DeltaTable(entry.path, version=entry.version).history(1)
    found: Mapping[str, Any] = json.loads(commit["userMetadata"])["cost"]
    return found


def built_both_ways(lake: SmallLake, definitions: Sequence[Definition]) -> dict[str, str]:
    """Build tables by Spark, then by this process; return those whose rows differ."""
    by_spark = brought(lake, *definitions)
    assert {cost(entry)["engine"] for entry in by_spark} == {"spark"}
    bits = [stored(entry) for entry in by_spark]
    lake.large = None
    for definition in definitions:
        rebuilds(lake.folder).ask(definition.table)
    here = brought(lake, *definitions, last=by_spark)
    assert {cost(entry)["engine"] for entry in here} == {"local"}
    pairs = zip(definitions, bits, here, strict=True)
    return {str(d.table): "differs" for d, before, after in pairs if before != stored(after)}


def stored(entry: DerivedEntry) -> list[Any]:
    """Return the rows with their types, digests and numbers of copies."""
    builder = QueryBuilder().register("t", DeltaTable(entry.path, version=entry.version))
    found = pa.table(builder.execute("SELECT * FROM t").read_all())
    types = [(field.name, str(field.type)) for field in found.schema]
    return [types, *sorted(map(repr, found.to_pylist()))]


def test_the_rows_are_the_same_to_the_bit(spark: SparkSession, tmp_path: Path) -> None:
    """Also the digests, by which the next step finds them."""
    lake = lake_of(tmp_path, spark)
    same = "SELECT e.who FROM shop.events AS e"

    assert built_both_ways(lake, [read(BY_WHO), read(same, "same")]) == {}


def test_the_time_of_the_cut_is_the_same_to_the_bit(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, spark)
    lake.committed_at = datetime(2024, 3, 31, 10, 9, 0, 123_000, tzinfo=UTC)
    timed = """SELECT e.id, cut_time() AS now, cut_time()::text AS said, e.tz
FROM shop.events AS e WHERE e.tz > cut_time() - INTERVAL '6 minutes'"""

    assert built_both_ways(lake, [read(timed)]) == {}

    (entry,) = brought(lake, read(timed))
    assert [row[0] for row in rows_of(entry)] == [1, 2, 4]
    assert {row[1] for row in rows_of(entry)} == {lake.committed_at}


def test_every_type_that_it_takes(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, spark)
    lake.schemas = {"events": MANY}
    some = {"id": 1, "b": True, "i": -7, "s": 3, "d": Decimal("-0.0000000001"), "t": "'ü\\\n"}
    full = {"raw": b"\x00\xff", "day": -1, "ts": -1, "tz": 253402300799999999}
    lake.widen(events=[{"id": 0}, {**some, **full}, {**some, **full}])
    listed = ", ".join(f"e.{name}" for name in MANY.names)
    sums = (
        "SELECT sum(e.id) AS a, sum(e.i) AS b, sum(e.d) AS c, count(*) AS n FROM shop.events AS e"
    )

    same = read(f"SELECT {listed} FROM shop.events AS e", "same")

    assert built_both_ways(lake, [same, read(sums, "sums")]) == {}


def test_shapes_of_nexmark(spark: SparkSession, tmp_path: Path) -> None:
    shapes = {name: QUERIES[name] for name in ("q4", "q5", "q9", "q15")}
    lake = SmallLake(tmp_path, nexmark.SCHEMAS)
    lake.large = LargeQueries(session=spark, folder=f"{tmp_path}/lake/aside", fewest=0)
    (*_, world) = nexmark.cuts(seed=5, count=2)
    lake.set(**world)

    assert built_both_ways(lake, list(defined(shapes).values())) == {}


def test_what_follows_is_scoped(spark: SparkSession, tmp_path: Path) -> None:
    lake, definition = lake_of(tmp_path, spark), read(BY_WHO)
    first = brought(lake, definition)
    lake.set(events=[row((n, who, time)) for n, (who, time) in enumerate([*TIMES, ("é", "11:00")])])

    (entry,) = brought(lake, definition, last=first)

    assert (cost(entry)["mode"], cost(entry)["engine"]) == ("scoped", "local")
    assert [found[:2] for found in rows_of(entry)] == [("a", 3), ("é", 2), (None, 1)]


def test_few_rows_are_calculated_here(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, spark, fewest=len(TIMES) + 1)

    assert cost(*brought(lake, read(BY_WHO)))["engine"] == "local"

    lake.set(events=[row((n, "b", "10:00")) for n in range(len(TIMES) + 1)])
    rebuilds(lake.folder).ask(read(BY_WHO).table)

    assert cost(*brought(lake, read(BY_WHO)))["engine"] == "spark"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (FLOOR, "Spark cannot calculate floor"),
        ("SELECT e.id::double precision AS x FROM shop.events AS e", "x is a float"),
    ],
)
def test_what_it_cannot_say_is_calculated_here(
    spark: SparkSession, tmp_path: Path, query: str, why: str
) -> None:
    lake = lake_of(tmp_path, spark)

    (entry,) = brought(lake, read(query))

    assert cost(entry)["engine"] == "local"
    assert why in cost(entry)["why"]
    assert len(rows_of(entry)) == len(TIMES)


def test_nothing_stays_aside(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, spark)

    brought(
        lake,
        read(BY_WHO),
        read(FLOOR, "here"),
    )

    assert [file for file in (tmp_path / "lake/aside").rglob("*") if file.is_file()] == []


@pytest.mark.parametrize(
    ("derived", "master", "fewest"),
    [
        ("{}", "local[*]", 5_000_001),
        ("{local_rows: 10}", "local[2]", 11),
        ("{}", "spark://master:7077", 0),
        ("{engine: spark}", "local[*]", 0),
        ("{engine: local}", "spark://master:7077", None),
    ],
)
def test_the_configuration_says_what_is_large(
    spark: SparkSession, tmp_path: Path, derived: str, master: str, fewest: int | None
) -> None:
    file = tmp_path / "wal2lake.yaml"
    text = f"source: {{tables: [shop.*]}}\nlake: {{path: lake}}\nderived: {derived}\n"
    file.write_text(f"{text}spark: {{master: '{master}'}}\n")

    found = large_queries(load(file), spark)

    assert (None if found is None else found.fewest) == fewest


def test_what_a_killed_job_left_aside_is_deleted(spark: SparkSession, tmp_path: Path) -> None:
    config = Config(source=Source(tables=["shop.*"]), lake=Lake(path=str(tmp_path)))
    result, other = derived_aside_path(config) + "/marts.t", aside_path(config, "operation")
    for folder in map(Path, (result, other)):
        folder.mkdir(parents=True)
        (folder / "part").touch()

    large_queries(config, spark)

    assert not Path(result).exists()
    assert (Path(other) / "part").exists()


def test_a_result_that_waits_is_no_leftover(spark: SparkSession, tmp_path: Path) -> None:
    config = Config(source=Source(tables=["shop.*"]), lake=Lake(path=str(tmp_path)))
    image, older = (Path(reading_path(config, TableId("shop", "places"), n)) for n in (2, 1))
    result, other = Path(derived_aside_path(config)), Path(aside_path(config, "operation"))
    for folder in (image, older, result, other):
        folder.mkdir(parents=True)
    job: Any = SimpleNamespace(config=config, spark=spark)
    made: Any = SimpleNamespace(path=str(image))

    remove_leftovers(job, made)

    assert [one.exists() for one in (image, older, result, other)] == [True, False, True, False]
