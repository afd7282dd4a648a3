"""How much is measured: the whole in half an hour, quickly in two minutes, or just once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of one run; all seconds are of one measurement unless a line says otherwise."""

    name: str
    repetitions: int
    whole_seconds: float  # after that long no further benchmark or slow cell begins
    # The whole
    rates: Mapping[int, float]  # changes per second -> for so many seconds
    table_counts: tuple[int, ...]
    patience_seconds: float  # for everything to become readable
    rows_per_table: int
    burst_changes: int  # of the highest sustained rate
    round_events: int
    round_rows: int  # of each table
    rounds: Mapping[str, int]  # by way, after one by which the job gets warm
    idle_seconds: float
    start_counts: tuple[int, ...]  # tables
    replays: bool  # whether a table is rebuilt
    snapshot_rows: int
    snapshot_rows_before: int
    snapshot_seconds: float  # after ``up``; after that long the rows so far count
    # Apply alone
    table_rows: tuple[int, ...]
    changes: tuple[int, ...]
    spark_heap: str
    slow_ways: tuple[str, ...]  # those of them that take part; none named: all
    slow_repetitions: int  # of ways by Spark and delta-rs
    slow_seconds: float  # for all cells of one slow way, in one table
    # Reads
    read_rows: int
    read_rounds: int
    read_changes: int
    lookups: int
    # Limits
    limit_changes: int
    limit_rows: int
    # Derived tables
    derived_events: int  # of Nexmark, before the changes
    derived_scale: float  # of TPC-H
    derived_changes: int  # changed rows of a step, about
    derived_steps: int
    derived_spark_steps: int  # the last of them
    derived_seconds: float  # for the queries of one suite; after them no other begins
    catch_up_events: int
    catch_ups: int
    ten_events: int  # of Nexmark, before the rounds
    ten_rounds: int
    ten_seconds: float  # of the load
    # Peers
    peer_rows: int  # of each table
    peer_rounds: int
    peer_warm_seconds: float
    peer_seconds: float


FULL: Final = Sizes(
    name="full",
    repetitions=5,
    whole_seconds=1_620,
    rates={100: 8, 500: 20, 2_000: 8},
    table_counts=(1, 8, 50),
    patience_seconds=90,
    rows_per_table=4_000,
    burst_changes=150_000,
    round_events=2_500,
    round_rows=2_000,
    rounds={"ours": 5, "before": 2},
    idle_seconds=20,
    start_counts=(1, 52),
    replays=True,
    snapshot_rows=10_000_000,
    snapshot_rows_before=80_000,
    snapshot_seconds=240,
    table_rows=(1_000_000, 10_000_000, 50_000_000),
    changes=(100, 1_000, 10_000, 100_000),
    spark_heap="4g",
    slow_ways=(),
    slow_repetitions=2,
    slow_seconds=14,
    read_rows=2_000_000,
    read_rounds=200,
    read_changes=2_000,
    lookups=50,
    limit_changes=100_000,
    limit_rows=1_000_000,
    derived_events=500_000,
    derived_scale=0.12,
    derived_changes=2_500,
    derived_steps=3,
    derived_spark_steps=1,
    derived_seconds=240,
    catch_up_events=1_000_000,
    catch_ups=2,
    ten_events=100_000,
    ten_rounds=9,
    ten_seconds=15,
    peer_rows=50_000,
    peer_rounds=3,
    peer_warm_seconds=10,
    peer_seconds=40,
)

QUICK: Final = Sizes(
    name="quick",
    repetitions=2,
    whole_seconds=105,
    rates={500: 8},
    table_counts=(8,),
    patience_seconds=40,
    rows_per_table=1_000,
    burst_changes=10_000,
    round_events=2_500,
    round_rows=1_000,
    rounds={},
    idle_seconds=5,
    start_counts=(),
    replays=False,
    snapshot_rows=50_000,
    snapshot_rows_before=5_000,
    snapshot_seconds=20,
    table_rows=(100_000,),
    changes=(100, 10_000),
    spark_heap="1g",
    slow_ways=("Spark", "tuned MERGE"),
    slow_repetitions=1,
    slow_seconds=3,
    read_rows=50_000,
    read_rounds=20,
    read_changes=500,
    lookups=10,
    limit_changes=20_000,
    limit_rows=100_000,
    derived_events=20_000,
    derived_scale=0.01,
    derived_changes=500,
    derived_steps=2,
    derived_spark_steps=1,
    derived_seconds=40,
    catch_up_events=50_000,
    catch_ups=1,
    ten_events=10_000,
    ten_rounds=3,
    ten_seconds=5,
    peer_rows=10_000,
    peer_rounds=1,
    peer_warm_seconds=5,
    peer_seconds=15,
)

TINY: Final = Sizes(
    name="tiny",
    repetitions=1,
    whole_seconds=7_200,
    rates={50: 4, 100: 2},
    table_counts=(2,),
    patience_seconds=180,
    rows_per_table=100,
    burst_changes=500,
    round_events=200,
    round_rows=100,
    rounds={"ours": 1, "before": 1},
    idle_seconds=3,
    start_counts=(1,),
    replays=True,
    snapshot_rows=2_000,
    snapshot_rows_before=2_000,
    snapshot_seconds=120,
    table_rows=(2_000,),
    changes=(10, 100),
    spark_heap="1g",
    slow_ways=(),
    slow_repetitions=1,
    slow_seconds=5,
    read_rows=2_000,
    read_rounds=4,
    read_changes=50,
    lookups=2,
    limit_changes=500,
    limit_rows=2_000,
    derived_events=2_000,
    derived_scale=0.002,
    derived_changes=100,
    derived_steps=1,
    derived_spark_steps=1,
    derived_seconds=60,
    catch_up_events=2_000,
    catch_ups=1,
    ten_events=1_000,
    ten_rounds=1,
    ten_seconds=3,
    peer_rows=100,
    peer_rounds=1,
    peer_warm_seconds=2,
    peer_seconds=8,
)

BY_NAME: Final = {sizes.name: sizes for sizes in (FULL, QUICK, TINY)}
