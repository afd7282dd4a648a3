"""How much is measured: the whole in half an hour, quickly in two minutes, or just once."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of one run; all seconds are of one measurement unless a line says otherwise."""

    name: str
    repetitions: int
    whole_seconds: float  # after that long no further benchmark begins
    # The whole
    rates: tuple[int, ...]  # changes per second
    table_counts: tuple[int, ...]
    live_seconds: float
    patience_seconds: float  # for everything to become readable
    rows_per_table: int
    burst_changes: int  # of the highest sustained rate
    round_events: int
    rounds: int  # of each code
    idle_seconds: float
    start_counts: tuple[int, ...]  # tables
    snapshot_rows: int
    snapshot_rows_before: int
    snapshot_seconds: float  # after that long the rows so far count
    # Apply alone
    table_rows: tuple[int, ...]
    changes: tuple[int, ...]
    spark_heap: str
    slow_seconds: float  # for all cells of one slow way
    # Reads
    read_rows: int
    read_rounds: int
    read_changes: int
    lookups: int
    # Limits
    limit_changes: int
    limit_rows: int
    # Peers
    peer_rounds: int
    peer_seconds: float


FULL: Final = Sizes(
    name="full",
    repetitions=5,
    whole_seconds=1_500,
    rates=(100, 500, 2_000),
    table_counts=(1, 8, 50),
    live_seconds=15,
    patience_seconds=90,
    rows_per_table=10_000,
    burst_changes=200_000,
    round_events=2_500,
    rounds=3,
    idle_seconds=30,
    start_counts=(1, 52),
    snapshot_rows=10_000_000,
    snapshot_rows_before=60_000,
    snapshot_seconds=150,
    table_rows=(1_000_000, 10_000_000, 50_000_000),
    changes=(100, 1_000, 10_000, 100_000),
    spark_heap="4g",
    slow_seconds=40,
    read_rows=2_000_000,
    read_rounds=200,
    read_changes=2_000,
    lookups=50,
    limit_changes=200_000,
    limit_rows=1_000_000,
    peer_rounds=3,
    peer_seconds=40,
)

QUICK: Final = Sizes(
    name="quick",
    repetitions=2,
    whole_seconds=110,
    rates=(500,),
    table_counts=(8,),
    live_seconds=8,
    patience_seconds=40,
    rows_per_table=1_000,
    burst_changes=10_000,
    round_events=2_500,
    rounds=1,
    idle_seconds=5,
    start_counts=(),
    snapshot_rows=50_000,
    snapshot_rows_before=5_000,
    snapshot_seconds=20,
    table_rows=(100_000,),
    changes=(100, 10_000),
    spark_heap="1g",
    slow_seconds=3,
    read_rows=50_000,
    read_rounds=20,
    read_changes=500,
    lookups=10,
    limit_changes=20_000,
    limit_rows=100_000,
    peer_rounds=1,
    peer_seconds=15,
)

TINY: Final = Sizes(
    name="tiny",
    repetitions=1,
    whole_seconds=7_200,
    rates=(50,),
    table_counts=(2,),
    live_seconds=4,
    patience_seconds=180,
    rows_per_table=100,
    burst_changes=500,
    round_events=200,
    rounds=1,
    idle_seconds=3,
    start_counts=(1,),
    snapshot_rows=2_000,
    snapshot_rows_before=2_000,
    snapshot_seconds=120,
    table_rows=(2_000,),
    changes=(10, 100),
    spark_heap="1g",
    slow_seconds=5,
    read_rows=2_000,
    read_rounds=4,
    read_changes=50,
    lookups=2,
    limit_changes=500,
    limit_rows=2_000,
    peer_rounds=1,
    peer_seconds=8,
)

BY_NAME: Final = {sizes.name: sizes for sizes in (FULL, QUICK, TINY)}
