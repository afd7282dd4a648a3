"""What should stay flat in a long run: samples, their medians, the most files there may be."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cdc.config import Job
from cdc.lake.upkeep.control_tables import FILES
from cdc.lake.upkeep.small_files import TIERS

FILES_PER_ROUND: Final = 4
"""At most of a commit: one of each of a shuffle's two tasks, and room for those of a scan."""
SLACK: Final = 3
"""Commits that may lie between two looks at the same moment: at the clock, and at the table."""
QUARTERS: Final = 4
TITLES: Final = (
    *("tables", "quarter", "samples", "files, most", "files, mean"),
    *("log KB", "of it opened KB", "read s", "job MB", "disk MB"),
)
_COMMIT: Final = ".json"
_CHECKPOINT: Final = ".checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSample:
    """One table at one moment."""

    table: str
    control: bool  # one of ours, under _wal2lake
    files: int  # live ones
    large: int  # of these such as are not rewritten any more
    rounds: int  # commits of rows since the job counts them, and nothing else has made any
    log_bytes: int
    opened_bytes: int  # of the log what a reader has to open
    seconds: float  # to read all rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    at: float  # seconds since the walk began
    lives: int  # jobs that there were until now
    rss: int | None  # of the job's JVM; None where none runs
    disk: int  # bytes of the lake's disk that are taken
    tables: tuple[TableSample, ...]


def opened(sizes: Mapping[str, int]) -> int:
    """Bytes of a log's newest checkpoint, and of the commits behind it; by the names of files."""
    numbered = [(name.partition(".")[0], name, size) for name, size in sizes.items()]
    known = [(int(number), name, size) for number, name, size in numbered if number.isdecimal()]
    points = [number for number, name, _ in known if _CHECKPOINT in name]
    newest = max(points, default=-1)
    return sum(
        size
        for number, name, size in known
        if (number > newest and name.endswith(_COMMIT))
        or (number == newest and _CHECKPOINT in name)
    )


def most_files(found: TableSample, job: Job, lives: int) -> int | None:
    """How many there may be of it now; None where nobody can say.

    A control table is counted with every commit; one more is there where the job died in between.
    Of the others small files are counted by every ``maintain_every_commits``-th commit of a job
    that lives so long. Fewer than ``optimize_small_files`` are left then, beside a few of which
    each is larger than twice all below it, and a commit after it brings only so many. A job that
    dies sooner has counted nothing: there is no bound then.
    """
    every = job.maintain_every_commits
    if found.control and found.table != "log":
        return FILES + TIERS + lives
    if found.rounds < every + SLACK:
        return None
    left = job.optimize_small_files - 1 + TIERS
    return found.large + left + FILES_PER_ROUND * (every + SLACK)


def too_many(samples: Iterable[Sample], job: Job) -> Iterator[str]:
    """Every table that had more files than there may be, with the moment."""
    for sample in samples:
        for found in sample.tables:
            most = most_files(found, job, sample.lives)
            if most is not None and found.files > most:
                yield (
                    f"{found.table} had {found.files} files after {sample.at:.0f} s, more than "
                    f"{most}: {found.rounds} commits of a job that counts them"
                )


def judged(samples: Iterable[Sample], job: Job) -> int:
    """Tables of the bank, once for each sample in which the number of their files has a bound."""
    return sum(
        most_files(found, job, sample.lives) is not None
        for sample in samples
        for found in sample.tables
        if not found.control
    )


def report(samples: Sequence[Sample]) -> str:
    """By quarter of the run, the median over its samples; first the bank's tables, then ours."""
    lines = [f"| {' | '.join(TITLES)} |", "|---" * len(TITLES) + "|"]
    for control, title in ((False, "bank"), (True, "_wal2lake")):
        for number, part in enumerate(_quarters(samples), 1):
            cells = _medians(part, control=control)
            lines.append(" | ".join([f"| {title}", str(number), str(len(part)), *cells]) + " |")
    return "\n".join(lines)


def _quarters(samples: Sequence[Sample]) -> list[list[Sample]]:
    """By time, not by number: where the machine is busy samples are rarer."""
    end = max((sample.at for sample in samples), default=0.0)
    parts: list[list[Sample]] = [[] for _ in range(QUARTERS)]
    for sample in samples:
        place = int(sample.at / end * QUARTERS) if end else 0
        parts[min(place, QUARTERS - 1)].append(sample)
    return parts


def _medians(part: Sequence[Sample], *, control: bool) -> list[str]:
    chosen = [[t for t in sample.tables if t.control is control] for sample in part]
    chosen = [tables for tables in chosen if tables]
    resident = [sample.rss / 2**20 for sample in part if sample.rss is not None]
    return [
        _median((max(t.files for t in tables) for tables in chosen), "{:.0f}"),
        _median((statistics.mean(t.files for t in tables) for tables in chosen), "{:.1f}"),
        _median((sum(t.log_bytes for t in tables) / 1024 for tables in chosen), "{:.0f}"),
        _median((sum(t.opened_bytes for t in tables) / 1024 for tables in chosen), "{:.0f}"),
        _median((sum(t.seconds for t in tables) for tables in chosen), "{:.2f}"),
        _median(resident, "{:.0f}"),
        _median((sample.disk / 2**20 for sample in part), "{:.0f}"),
    ]


def _median(values: Iterable[float], form: str) -> str:
    found = list(values)
    return form.format(statistics.median(found)) if found else "-"
