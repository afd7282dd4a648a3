"""Lists all benchmarks, in the order in which they run.

The last ones are cut short when time runs out: ``apply`` leaves cells out, ``derived`` parts.
"""

from typing import Final

from bench.apply.apply import APPLY
from bench.core.room import Benchmark
from bench.derived.derived import DERIVED
from bench.flame.profile import FLAME
from bench.limits.limits import LIMITS
from bench.reads.reads import READS
from bench.whole.live import LIVE
from bench.whole.round import ROUND
from bench.whole.snapshot import SNAPSHOT
from bench.whole.start import START

BENCHMARKS: Final[tuple[Benchmark, ...]] = (
    LIMITS,
    LIVE,
    ROUND,
    START,
    SNAPSHOT,
    FLAME,
    READS,
    APPLY,
    DERIVED,
)
