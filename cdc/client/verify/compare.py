"""Compare two streams of rows as multisets, within bounded memory.

Rows are texts (``cdc/client/verify/render.py``). They are dealt into buckets on disk by a hash of
their key (``cdc/client/verify/dealt_rows.py``), and each bucket is counted on its own: +1 for a row
of the source, -1 for one of the lake. Rows whose counts do not sum to zero are differences.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc.client.verify.dealt_rows import HASHES, WEIGHT, Part, dealt, weighted

SHOWN: Final = 20
BUCKET_BYTES: Final = 512 << 20
"""How many bytes of rows are counted together; counting takes about twice as much memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDifference:
    """Names one key whose rows differ, and says how."""

    key: tuple[str | None, ...]
    kind: str  # missing, extra or changed, from the lake's point of view
    columns: tuple[str, ...] = ()  # the columns that differ, if both sides have the key


@dataclass(slots=True, kw_only=True)
class Comparison:
    """Counts the rows on both sides and their differences."""

    source_rows: int = 0
    lake_rows: int = 0
    missing: int = 0  # rows of the source that the lake lacks
    extra: int = 0  # rows of the lake that the source lacks
    changed: int = 0  # keys on both sides with different values
    keys: list[KeyDifference] = field(default_factory=list)  # the first ``SHOWN`` differences

    @property
    def equal(self) -> bool:
        """Return whether there is no difference."""
        return not (self.missing or self.extra or self.changed)


def compare(
    source: Iterable[pa.Table],
    lake: Iterable[pa.Table],
    *,
    columns: Sequence[str],
    key: Sequence[int],
    buckets: int,
    scratch: Path,
    most_bytes: int = BUCKET_BYTES,
) -> Comparison:
    """Compare tables of text columns ``c0, c1, ...``; ``columns`` are their names for people.

    ``key`` holds the positions of the key's columns; without a key, whole rows are compared.
    ``buckets`` is an estimate of how many are needed; a bucket of more than ``most_bytes`` is dealt
    again. ``scratch`` is a directory for the buckets.
    """
    result = Comparison()
    comparing = _Comparing(columns, key, scratch, most_bytes, result)
    rows = chain(
        _counted(weighted(source, 1), result, "source_rows"),
        _counted(weighted(lake, -1), result, "lake_rows"),
    )
    comparing.deal(rows, max(1, buckets), 1)
    return result


def _counted(tables: Iterable[pa.Table], result: Comparison, name: str) -> Iterator[pa.Table]:
    for table in tables:
        setattr(result, name, getattr(result, name) + table.num_rows)
        yield table


@dataclass(frozen=True, slots=True)
class _Comparing:
    columns: Sequence[str]
    key: Sequence[int]
    scratch: Path
    most_bytes: int
    result: Comparison

    def deal(self, rows: Iterable[pa.Table], number: int, divisor: int) -> None:
        """Deal the rows into ``number`` parts and count each; see ``dealt`` for ``divisor``."""
        with dealt(rows, number, self.key, self.scratch, divisor=divisor) as parts:
            every = sum(part.rows for part in parts)
            for part in parts:
                alike = len(parts) > 1 and part.rows == every  # most likely copies of one row
                self._count(part, HASHES if alike else divisor * len(parts))
                part.remove()

    def _count(self, part: Part, divisor: int) -> None:
        if part.bytes > self.most_bytes and divisor < HASHES:
            number = 1 + math.ceil(part.bytes / self.most_bytes)
            self.deal(part.tables(), number, divisor)
        elif part.rows:
            _count(part.tables(self.most_bytes), self.columns, self.key, self.result)


def _count(
    tables: Iterable[pa.Table], columns: Sequence[str], key: Sequence[int], result: Comparison
) -> None:
    left = _left(tables)
    if not left.num_rows:
        return
    names, weights = left.column_names[:-1], left.column(WEIGHT)
    left = left.append_column("there", pc.max_element_wise(weights, 0))
    left = left.append_column("here", pc.max_element_wise(pc.negate(weights), 0))
    if key:
        _by_key(left, [names[position] for position in key], columns, result)
    else:
        result.missing += pc.sum(left.column("there")).as_py()
        result.extra += pc.sum(left.column("here")).as_py()


def _left(tables: Iterable[pa.Table]) -> pa.Table:
    """Return the rows whose weights do not sum to zero, each once with its sum."""
    left: pa.Table | None = None
    for table in tables:
        every = table if left is None else pa.concat_tables([left, table])
        sums = every.group_by(every.column_names[:-1], use_threads=False)
        summed = sums.aggregate([(WEIGHT, "sum")]).rename_columns(every.column_names)
        left = summed.filter(pc.not_equal(summed.column(WEIGHT), 0))
    assert left is not None  # noqa: S101 - a part without rows is not counted
    return left


def _by_key(left: pa.Table, key: Sequence[str], columns: Sequence[str], result: Comparison) -> None:
    grouped = left.group_by(list(key), use_threads=False).aggregate(
        [("there", "sum"), ("here", "sum")]
    )
    there, here = (pc.greater(grouped.column(f"{name}_sum"), 0) for name in ("there", "here"))
    kinds = {
        "changed": pc.and_(there, here),
        "missing": pc.and_not(there, here),
        "extra": pc.and_not(here, there),
    }
    for kind, mask in kinds.items():
        keys = grouped.filter(mask)
        number = keys.num_rows if kind == "changed" else _copies(keys, kind)
        setattr(result, kind, getattr(result, kind) + number)
        shown = keys.select(list(key)).slice(0, SHOWN - len(result.keys)).to_pylist()
        for row in shown:
            differing = _differing(left, row, columns) if kind == "changed" else ()
            result.keys.append(KeyDifference(key=tuple(row.values()), kind=kind, columns=differing))


def _copies(keys: pa.Table, kind: str) -> int:
    """Return the number of rows, not of keys: the lake may hold a key more than once."""
    return pc.sum(keys.column("there_sum" if kind == "missing" else "here_sum")).as_py() or 0


def _differing(
    left: pa.Table, key: dict[str, str | None], columns: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns in which the rows of one key differ."""
    rows = left
    for name, text in key.items():
        same = pc.is_null(rows.column(name)) if text is None else pc.equal(rows.column(name), text)
        rows = rows.filter(same)
    return tuple(
        column
        for position, column in enumerate(columns)
        if len(set(rows.column(position).to_pylist())) > 1
    )
