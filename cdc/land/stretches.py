"""Reads a topic's events back from the log without Spark: any number, but few at a time."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.lake.files.delta import delta_table
from cdc.land.read_back import ask, inside, rows_where
from cdc.land.small_batches import MOST_BYTES

MOST: Final = 20_000
"""Events that are in memory at once."""
_COUNTED: Final = """
SELECT landing, max("offset") AS last, count(*) AS count FROM log
 WHERE {condition} GROUP BY landing ORDER BY landing
"""
_COUNT: Final = "SELECT count(*) AS n FROM log WHERE {condition}"


def stretches(
    path: str,
    topic: str,
    after: int,
    upto: int,
    *,
    most: int = MOST,
    most_bytes: int = MOST_BYTES,
) -> Iterator[pa.Table]:
    """Yield the log's rows of a topic beyond one offset, up to another, by offset.

    All are of one version of the log. At most ``most`` of them are in memory at once, and fewer
    where they have more than ``most_bytes``.
    """
    log = delta_table(path)
    found = ask(log, _COUNTED.format(condition=inside(topic, after, upto))).read_all()
    for landings in _groups(pa.table(found).to_pylist(), most):
        part = _Part(log, topic, landings[0]["landing"], landings[-1]["landing"])
        upto = landings[-1]["last"]
        yield from part.rows(after, upto, most, most_bytes)
        after = upto


def _groups(
    landings: Sequence[Mapping[str, int]], most: int
) -> Iterator[Sequence[Mapping[str, int]]]:
    """Yield as many landings as have few events together, at least one."""
    while landings:
        totals = list(accumulate(landing["count"] for landing in landings))
        taken = max(1, bisect_right(totals, most))
        yield landings[:taken]
        landings = landings[taken:]


@dataclass(frozen=True, slots=True)
class _Part:
    """Reads a topic's rows in some landings, from the files of these landings alone."""

    log: DeltaTable
    topic: str
    first: int
    last: int

    def rows(self, after: int, upto: int, most: int, most_bytes: int) -> Iterator[pa.Table]:
        """Yield the rows between two offsets; in halves where they are too many, or too large."""
        among = f"landing BETWEEN {self.first:d} AND {self.last:d}"
        condition = f"{inside(self.topic, after, upto)} AND {among}"
        found = None
        if upto - after <= most or self._count(condition) <= most:
            # One event alone is read however large it is.
            limit = most_bytes if upto - after > 1 else 2**63
            found = rows_where(self.log, condition, limit)
        if found is None:
            middle = (after + upto) // 2
            yield from self.rows(after, middle, most, most_bytes)
            yield from self.rows(middle, upto, most, most_bytes)
        elif len(found):
            yield found.sort_by("offset")

    def _count(self, condition: str) -> int:
        return int(ask(self.log, _COUNT.format(condition=condition)).read_all()["n"][0].as_py())
