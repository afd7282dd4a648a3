"""The rows that derived tables are measured with, and what their figures must reach."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from bench.__main__ import sections
from bench.core.figure import Figure, Measured
from bench.core.sizes import TINY
from bench.derived.equal import differing_rows
from bench.derived.lake import Lake
from bench.derived.market import Market
from bench.derived.names import ALL, BY_SCOPE, KEPT, LAGGING, NONE, OURS, SPARK, WHOLE
from bench.derived.refreshed import Warehouse
from bench.derived.rows import DERIVED_ROWS
from bench.derived.suites import NEXMARK, TPCH
from bench.derived.table_rows import Change, TableRows
from bench.derived.ten import TEN, define
from bench.derived.ways import Derived
from bench.registry import BENCHMARKS
from bench.report.plots import draw
from bench.report.tables import reach_lines
from cdc.derive.definition.declared import declared
from cdc.tables import TableId


def keys(rows: pa.Table) -> list[int]:
    found: list[int] = rows["id"].to_pylist()
    return found


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    market = Market(1, 5_000)

    sizes = {name: table.rows.num_rows for name, table in market.tables.items()}
    assert sizes == {"person": 100, "auction": 300, "bid": 4_600, "side_input": 20}
    bids = market.tables["bid"].rows
    assert set(bids["auction"].to_pylist()) <= set(keys(market.tables["auction"].rows))
    assert set(bids["bidder"].to_pylist()) <= set(keys(market.tables["person"].rows))
    assert bids["date_time"].to_pylist() == sorted(bids["date_time"].to_pylist())


def test_changes_insert_update_and_delete_rows_of_every_table() -> None:
    market = Market(1, 50_000)
    before = {name: set(keys(t.now())) for name, t in market.tables.items() if name != "side_input"}

    changes = market.changed(10_000)

    for name, there in before.items():
        gone = set(keys(market.tables[name].at(changes[name].gone)))
        came = set(keys(changes[name].added))
        assert gone <= there
        assert all((gone - came, gone & came, came - gone))
        assert set(keys(market.tables[name].now())) == (there - gone) | came
    assert sum(map(len, changes.values())) == pytest.approx(11_000, rel=0.01)
    assert changes["bid"].added.num_rows == 8_000 * 46 // 50 + 1_000 * 46 // 50


def test_the_same_seed_makes_the_same_events_and_keys_are_never_given_twice() -> None:
    one, other = Market(3, 1_000), Market(3, 1_000)

    for market in (one, other):
        market.changed(500)
        market.inserted(1_000)
    for name in one.tables:
        assert one.tables[name].now() == other.tables[name].now()
    assert len(set(keys(one.tables["bid"].now()))) == one.tables["bid"].now().num_rows


def test_a_refresh_moves_whole_orders() -> None:
    warehouse = Warehouse(1, 0.002)
    orders, items = warehouse.tables["orders"], warehouse.tables["lineitem"]
    before = set(orders.now()["o_orderkey"].to_pylist())

    changes = warehouse.changed(500)

    after = set(orders.now()["o_orderkey"].to_pylist())
    assert (len(before - after), len(after - before)) == (40, 40)
    assert set(items.now()["l_orderkey"].to_pylist()) == after  # every order has items
    assert set(changes) == {"supplier", "customer", "part", "partsupp", "orders", "lineitem"}
    with pytest.raises(ValueError, match="no more orders"):
        warehouse.changed(100_000)


@pytest.mark.parametrize("made", [Market(1, 2_000), Warehouse(1, 0.002)], ids=["market", "tpch"])
def test_the_lake_has_at_each_cut_what_the_tables_have(
    tmp_path: Path, made: Market | Warehouse
) -> None:
    lake = Lake(tmp_path)
    lake.create({name: table.rows for name, table in made.tables.items()})
    worlds = [{name: table.now() for name, table in made.tables.items()}]
    for _ in range(2):
        lake.commit(made.changed(200))
        worlds.append({name: table.now() for name, table in made.tables.items()})

    for cut, world in enumerate(worlds):
        for table, one in lake.inputs(cut).items():
            rows = world[table.name]
            assert in_order(stored(one.open(), rows.schema)) == in_order(rows)


def stored(table: DeltaTable, schema: pa.Schema) -> pa.Table:
    listed = ", ".join(f'"{name}"' for name in schema.names)
    found = QueryBuilder().register("t", table).execute(f"SELECT {listed} FROM t").read_all()
    return pa.table(found).cast(schema)


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()


def test_a_row_keeps_its_number() -> None:
    table = TableRows(pa.table({"id": [1, 2, 3]}))

    table.apply(Change(np.array([1]), pa.table({"id": [2, 4]})))

    assert keys(table.now()) == [1, 3, 2, 4]
    assert table.numbers().tolist() == [0, 2, 3, 4]
    assert keys(table.at(np.array([4]))) == [4]


def test_rows_are_compared_as_often_as_they_are_there(tmp_path: Path) -> None:
    for name, values in {"a": [1, 1, None], "b": [1, None, None], "c": [None, 1, 1]}.items():
        write_deltalake(str(tmp_path / name), pa.table({"x": pa.array(values, pa.int64())}))

    assert differing_rows(tmp_path / "a", tmp_path / "b") == 2
    assert differing_rows(tmp_path / "a", tmp_path / "c") == 0


def test_a_table_is_kept_by_its_scope_and_as_a_whole_with_the_same_rows(tmp_path: Path) -> None:
    market, lake = Market(1, 2_000), Lake(tmp_path / "lake")
    lake.create({name: table.rows for name, table in market.tables.items()})
    lake.commit(market.changed(20))
    definition = NEXMARK.definitions["q18"]
    ways = [Derived(definition=definition, lake=lake, folder=tmp_path / way) for way in "ab"]
    for one, first in zip(ways, (0, 1), strict=True):
        for cut in range(first, 2):
            one.bring(cut)
        one.close()

    assert [one.cost()["mode"] for one in ways] == ["scoped", "whole"]
    assert differing_rows(ways[0].path, ways[1].path) == 0
    assert DeltaTable(str(ways[0].path)).version() == 1


def test_no_query_is_refused() -> None:
    found = {suite.name: suite.kept(suite.make(1, TINY).tables) for suite in (NEXMARK, TPCH)}

    assert {name: len(kept) for name, kept in found.items()} == {"Nexmark": 23, "TPC-H": 22}
    kept = [how for suite in found.values() for how in suite.values()]
    assert [how for how in kept if how.startswith("refused")] == []


def test_the_ten_are_valid_definitions(tmp_path: Path) -> None:
    define(tmp_path / "derived")

    found = declared(
        tmp_path / "derived", {TableId("shop", n) for n in ("person", "auction", "bid")}
    )

    assert not found.problems
    assert {one.table.name for one in found.definitions} == set(TEN)
    assert len(TEN) == 10


def step(way: str, seconds: float, query: str, kept: str = BY_SCOPE) -> Figure:
    parameters = {"suite": "Nexmark", "query": query, "kept": kept}
    return Figure(name="derived step", way=way, unit="s", samples=(seconds,), parameters=parameters)


MEASURED = Measured.of(
    [
        *(step(KEPT, 0.1, query) for query in ("q1", "q2")),
        *(step(SPARK, seconds, query) for query, seconds in (("q1", 1.0), ("q2", 3.0))),
        step(KEPT, 0.1, "q7", "as a whole"),
        step(SPARK, 100.0, "q7", "as a whole"),
        *(step(WHOLE, 0.05, query) for query in ("q1", "q2")),
        Figure(name="derived differing", way=SPARK, unit="rows", samples=(0, 0, 2)),
        *(
            Figure(name="derived round", way=way, unit="s", samples=(seconds,))
            for way, seconds in ((NONE, 0.2), (ALL, 1.1))
        ),
        *(
            Figure(name="derived freshness", way=way, unit="s", samples=(seconds,))
            for way, seconds in ((NONE, 0.5), (LAGGING, 0.7))
        ),
        Figure(
            name="catch-up per core",
            way=OURS,
            unit="events/s",
            samples=(171_650.0,),
            parameters={"query": "q4"},
        ),
    ]
)


def test_rows_are_computed_from_the_figures() -> None:
    lines = {line[0]: line[1:] for line in reach_lines(DERIVED_ROWS, MEASURED)}

    assert lines["a step of Nexmark's queries by the scope key, beside a Spark job"][:2] == (
        "2 queries, 10.0 to 30.0 times cheaper",
        "20.00",
    )
    found = {what: line[-1] for what, line in lines.items()}
    assert found["a step of Nexmark's queries by the scope key, beside a Spark job"] == "met"
    assert found["a step of Nexmark's queries by the scope key, beside a full recompute"] == (
        "not met"
    )
    assert found["a step of TPC-H's queries by the scope key, beside a Spark job"] == "-"
    assert found["rows that differ from those of a Spark job, or of a full recompute"] == "not met"
    assert lines["ten derived tables add to a round of 2,500 events, p50"] == (
        "0.90 s: 0.2000 s to 1.10 s",
        "",
        "at most 1 s",
        "met",
    )
    lag = "freshness of captured tables, p50, while derived ones are forced to lag"
    assert found[lag] == "not met"
    q4 = "a million events of Nexmark's q4 in one step, beside Flink's published"
    assert lines[q4][1] == "5.00"


def test_the_plots_of_derived_tables_are_drawn(tmp_path: Path) -> None:
    drawn = draw(MEASURED, tmp_path)

    assert [path.stem for path in drawn] == [
        "derived-steps",
        "derived-freshness",
        "derived-catch-up",
    ]


def test_derived_tables_have_a_section_of_their_own() -> None:
    every = sections(BENCHMARKS)

    assert [(one.name, one.whole) for one in every] == [("bench", True), ("derived", True)]
    alone = [one for one in BENCHMARKS if one.name in ("derived", "apply")]
    assert [(one.name, one.whole) for one in sections(alone)] == [
        ("bench", False),
        ("derived", True),
    ]
