"""All benchmarks, in the order in which they run."""

from typing import Final

from bench.apply.apply import APPLY
from bench.core.room import Benchmark
from bench.flame.profile import FLAME
from bench.limits.limits import LIMITS
from bench.reads.reads import READS
from bench.whole.freshness import FRESHNESS
from bench.whole.idle import IDLE
from bench.whole.memory import MEMORY
from bench.whole.rebuild import REBUILD
from bench.whole.round import ROUND
from bench.whole.snapshot import SNAPSHOT
from bench.whole.start import START
from bench.whole.sustained import SUSTAINED

BENCHMARKS: Final[tuple[Benchmark, ...]] = (
    LIMITS,
    APPLY,
    READS,
    FLAME,
    FRESHNESS,
    SUSTAINED,
    ROUND,
    SNAPSHOT,
    REBUILD,
    IDLE,
    START,
    MEMORY,
)
