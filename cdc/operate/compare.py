"""Two streams of rows, compared as multisets within bounded memory.

Rows are texts (``cdc/operate/render.py``). They are dealt into buckets by a hash of their key, so
that a row and its counterpart meet in the same bucket; each bucket is then counted on its own:
+1 for a row of the source, -1 for one of the lake. What does not sum to zero is a difference.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

SHOWN: Final = 20
WEIGHT: Final = "weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDifference:
    """One key whose rows differ; ``columns`` are those that do, where the row is on both sides."""

    key: tuple[str | None, ...]
    kind: str  # missing, extra, changed: seen from the lake
    columns: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Comparison:
    """What two sides have in common and what not."""

    source_rows: int = 0
    lake_rows: int = 0
    missing: int = 0  # rows of the source that the lake lacks
    extra: int = 0  # rows of the lake that the source lacks
    changed: int = 0  # keys that both have, with different values
    keys: list[KeyDifference] = field(default_factory=list)  # the first of them

    @property
    def equal(self) -> bool:
        return not (self.missing or self.extra or self.changed)


def compare(
    source: Iterable[pa.Table],
    lake: Iterable[pa.Table],
    *,
    columns: Sequence[str],
    key: Sequence[int],
    buckets: int,
    scratch: Path,
) -> Comparison:
    """Compare tables of text columns ``c0, c1, ..``; ``columns`` are their names for a reader.

    ``key`` are the positions of the key's columns; without any, rows are equal or they are not.
    """
    result = Comparison()
    with ExitStack() as stack:
        dealt = [_Bucket(scratch / f"{number}.arrow", stack) for number in range(buckets)]
        for table in source:
            result.source_rows += table.num_rows
            _deal(table, 1, key, dealt)
        for table in lake:
            result.lake_rows += table.num_rows
            _deal(table, -1, key, dealt)
        for bucket in dealt:
            _count(bucket.rows(), columns, key, result)
    return result


class _Bucket:
    """Rows of both sides, on disk."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path = path
        self._stack = stack
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, rows: pa.Table) -> None:
        if self._writer is None:
            self._stack.callback(self._path.unlink, missing_ok=True)
            self._writer = pa.ipc.new_stream(str(self._path), rows.schema)
        self._writer.write_table(rows)

    def rows(self) -> pa.Table | None:
        """All rows; the file is gone afterwards."""
        if self._writer is None:
            return None
        self._writer.close()
        with pa.ipc.open_stream(str(self._path)) as reader:
            found = reader.read_all()
        self._path.unlink()
        return found


def _deal(rows: pa.Table, weight: int, key: Sequence[int], buckets: Sequence[_Bucket]) -> None:
    if not rows.num_rows:
        return
    weights = pa.array([weight], pa.int64()).take(pa.array([0] * rows.num_rows))
    weighted = rows.append_column(WEIGHT, weights)
    if len(buckets) == 1:
        buckets[0].add(weighted)
        return
    numbers = pa.array(_numbers(rows, key, len(buckets)), pa.int32())
    for number in pc.unique(numbers).to_pylist():
        buckets[number].add(weighted.filter(pc.equal(numbers, number)))


def _numbers(rows: pa.Table, key: Sequence[int], buckets: int) -> Iterator[int]:
    """The bucket of every row, from its key, or from the whole row where it has none."""
    positions = key or range(rows.num_columns)
    joined = pc.binary_join_element_wise(
        *(pc.fill_null(rows.column(position), "") for position in positions),
        pa.scalar("\x1f", pa.large_string()),
    )
    return (zlib.crc32(text.encode()) % buckets for text in joined.to_pylist())


def _count(
    rows: pa.Table | None, columns: Sequence[str], key: Sequence[int], result: Comparison
) -> None:
    if rows is None:
        return
    names = rows.column_names[:-1]
    sums = rows.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    left = sums.filter(pc.not_equal(sums.column(f"{WEIGHT}_sum"), 0))
    if not left.num_rows:
        return
    weights = left.column(f"{WEIGHT}_sum")
    left = left.append_column("there", pc.max_element_wise(weights, 0))
    left = left.append_column("here", pc.max_element_wise(pc.negate(weights), 0))
    if key:
        _by_key(left, [names[position] for position in key], columns, result)
    else:
        result.missing += pc.sum(left.column("there")).as_py()
        result.extra += pc.sum(left.column("here")).as_py()


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
        found = grouped.filter(mask)
        number = found.num_rows if kind == "changed" else _copies(found, kind)
        setattr(result, kind, getattr(result, kind) + number)
        shown = found.select(list(key)).slice(0, SHOWN - len(result.keys)).to_pylist()
        for row in shown:
            unlike = _unlike(left, row, columns) if kind == "changed" else ()
            result.keys.append(KeyDifference(key=tuple(row.values()), kind=kind, columns=unlike))


def _copies(found: pa.Table, kind: str) -> int:
    """Rows, not keys: the lake may hold a key more than once."""
    return pc.sum(found.column("there_sum" if kind == "missing" else "here_sum")).as_py() or 0


def _unlike(left: pa.Table, key: dict[str, str | None], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns in which the rows of one key differ."""
    rows = left
    for name, text in key.items():
        same = pc.is_null(rows.column(name)) if text is None else pc.equal(rows.column(name), text)
        rows = rows.filter(same)
    return tuple(
        column
        for position, column in enumerate(columns)
        if len(set(rows.column(position).to_pylist())) > 1
    )
