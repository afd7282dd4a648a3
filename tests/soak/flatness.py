"""Measure what should stay flat in a long run: samples, medians and bounds on files."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cdc.config import Job
from cdc.lake.upkeep.control_tables import FILES
from cdc.lake.upkeep.small_files import TIERS

FILES_PER_ROUND: Final = 4
"""The most files of a commit: one for each of a shuffle's two tasks, and some for a scan's."""
SLACK: Final = 3
"""Commits that may occur between reading the clock and opening the table for one sample."""
QUARTERS: Final = 4
TITLES: Final = (
    *("tables", "quarter", "samples", "files, most", "files, mean"),
    *("log KB", "of it opened KB", "read s", "job MB", "disk MB"),
)
_COMMIT: Final = ".json"
_CHECKPOINT: Final = ".checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSample:
    """Holds what was measured of one table at one moment."""

    table: str
    control: bool  # one of wal2lake's, under _wal2lake
    files: int  # live files
    large: int  # files too large to be rewritten
    rounds: int  # commits of rows since the job started and no one else committed
    log_bytes: int
    opened_bytes: int  # bytes of the log that a reader has to open
    seconds: float  # time to read all rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Holds what was measured of the job and all tables at one moment."""

    at: float  # seconds since the walk began
    lives: int  # starts of the job so far
    rss: int | None  # bytes of the job's JVM; None if none runs
    disk: int  # used bytes of the lake's disk
    tables: tuple[TableSample, ...]


def opened(sizes: Mapping[str, int]) -> int:
    """Return the bytes of a log's newest checkpoint and later commits, given sizes by file name."""
    numbered = [(name.partition(".")[0], name, size) for name, size in sizes.items()]
    files = [(int(number), name, size) for number, name, size in numbered if number.isdecimal()]
    points = [number for number, name, _ in files if _CHECKPOINT in name]
    newest = max(points, default=-1)
    return sum(
        size
        for number, name, size in files
        if (number > newest and name.endswith(_COMMIT))
        or (number == newest and _CHECKPOINT in name)
    )


def most_files(table: TableSample, job: Job, lives: int) -> int | None:
    """Return the most files that the table may have now; None if there is no bound.

    The job counts a control table's files after every commit; each death of the job may leave one
    file more. It counts the small files of other tables after every ``maintain_every_commits``
    commits in its life. That leaves fewer than ``optimize_small_files``, plus a few of which each
    is larger than twice all smaller ones, and later commits add a limited number. A job that dies
    earlier has not counted, so there is no bound.
    """
    every = job.maintain_every_commits
    if table.control and table.table != "log":
        return FILES + TIERS + lives
    if table.rounds < every + SLACK:
        return None
    left = job.optimize_small_files - 1 + TIERS
    return table.large + left + FILES_PER_ROUND * (every + SLACK)


def too_many(samples: Iterable[Sample], job: Job) -> Iterator[str]:
    """Yield a line for each sample of a table with more files than its bound."""
    for sample in samples:
        for table in sample.tables:
            most = most_files(table, job, sample.lives)
            if most is not None and table.files > most:
                yield (
                    f"{table.table} had {table.files} files after {sample.at:.0f} s, more than "
                    f"{most}, with {table.rounds} commits since the job started counting"
                )


def judged(samples: Iterable[Sample], job: Job) -> int:
    """Return how many samples of the bank's tables have a bound on the number of files."""
    return sum(
        most_files(table, job, sample.lives) is not None
        for sample in samples
        for table in sample.tables
        if not table.control
    )


def report(samples: Sequence[Sample]) -> str:
    """Return a Markdown table of medians per quarter of the run: the bank's tables, then ours."""
    lines = [f"| {' | '.join(TITLES)} |", "|---" * len(TITLES) + "|"]
    for control, title in ((False, "bank"), (True, "_wal2lake")):
        for number, part in enumerate(_quarters(samples), 1):
            cells = _medians(part, control=control)
            lines.append(" | ".join([f"| {title}", str(number), str(len(part)), *cells]) + " |")
    return "\n".join(lines)


def _quarters(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Split by time, not by number: samples are rarer while the machine is busy."""
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
    listed = list(values)
    return form.format(statistics.median(listed)) if listed else "-"
