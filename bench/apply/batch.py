"""Batches of changes with one row per key, and what a table must hold after them."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

UNIFORM: Final = "uniform"
HOT: Final = "hot"
APPEND: Final = "append-mostly"
SHARES: Final = {UNIFORM: (0.8, 0.1), HOT: (0.8, 0.1), APPEND: (0.08, 0.02)}
"""Of updates and of deletes; the rest are inserts."""
HOT_SHARE: Final = 0.02  # of the keys, the newest ones
OFFSET_FROM: Final = 1_000_000_000
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Changes of distinct keys; ``rows`` have the columns of the table and ``deleted``."""

    rows: pa.Table
    low: int  # of the keys that may exist
    high: int

    @property
    def written(self) -> pa.Table:
        """The rows to write, with the columns of the table."""
        kept = self.rows.filter(pc.invert(self.rows["deleted"]))
        return kept.drop_columns(["deleted"])


@dataclass
class Made:
    """What one table was given so far; its makers of batches share it.

    So inserts have new keys, and offsets ascend: a MERGE with an offset guard passes over others.
    """

    next_id: int
    revision: int = 0


@dataclass(kw_only=True)
class Changes:
    """Makes batches, always the same for a seed; ``made.next_id`` is the table's first size."""

    made: Made
    keys: str
    seed: int

    def __post_init__(self) -> None:
        self._random = np.random.default_rng([self.seed, self.made.next_id, len(self.keys)])

    def batch(self, changes: int) -> Batch:
        """Return the next batch of so many changes."""
        of_updates, of_deletes = SHARES[self.keys]
        old_ids = self._existing(round(changes * (of_updates + of_deletes)))
        deletes = round(changes * of_deletes)
        new = changes - old_ids.size
        first = self.made.next_id
        ids = np.concatenate([old_ids, np.arange(first, first + new)])
        deleted = np.zeros(ids.size, bool)
        deleted[:deletes] = True
        self.made.next_id += new
        self.made.revision += 1
        rows = _rows(ids, self.made.revision).append_column("deleted", pa.array(deleted))
        low = int(old_ids.min(initial=self.made.next_id))
        return Batch(rows=rows, low=low, high=int(ids.max(initial=0)))

    def _existing(self, count: int) -> Ids:
        ids, newest = self.made.next_id, max(round(self.made.next_id * HOT_SHARE), 2 * count)
        first = 0 if self.keys == UNIFORM else max(ids - newest, 0)
        span = ids - first
        picked = self._random.choice(span, size=min(count, span), replace=False, shuffle=True)
        existing: Ids = picked.astype(np.int64) + first
        return existing


def _rows(ids: Ids, revision: int) -> pa.Table:
    """Return rows with the columns of ``base.COLUMNS``, as this revision has them."""
    offsets = OFFSET_FROM * revision + np.arange(ids.size)
    return pa.table(
        {
            "id": pa.array(ids),
            "revision": pa.array(np.full(ids.size, revision), pa.int32()),
            "customer": pa.array(ids * 7 % 100_003),
            "amount": _decimals(ids * 31 % 100_000),
            "weight": pa.array(ids / 8),
            "name": pa.array(
                [f"name {number * 2654435761 % 2**32:08x}" for number in ids.tolist()]
            ),
            "note": pa.array([f"note {number} of revision {revision}" for number in ids.tolist()]),
            "at": pa.array(ids * 1_000_000, pa.timestamp("us", "UTC")),
            "_cdc_offset": pa.array(offsets),
        }
    )


def _decimals(values: Ids) -> pa.Array:
    return pa.array(values).cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2))


@dataclass(kw_only=True)
class Expected:
    """What a table must hold: counts of rows and the sum of their revisions."""

    rows: int
    _revision: NDArray[np.int32] = field(init=False)  # by id; -1: there is no row

    def __post_init__(self) -> None:
        self._revision = np.zeros(self.rows, np.int32)

    def apply(self, batch: Batch, *, upserts_only: bool = False) -> None:
        """Take in a batch; ``upserts_only`` for a way that leaves deletes out."""
        ids = batch.rows["id"].to_numpy()
        revision = batch.rows["revision"].to_numpy()
        deleted = batch.rows["deleted"].to_numpy()
        more = int(ids.max(initial=0)) + 1 - self._revision.size
        if more > 0:
            self._revision = np.concatenate([self._revision, np.full(more, -1, np.int32)])
        kept = ~deleted
        self._revision[ids[kept]] = revision[kept]
        if not upserts_only:
            self._revision[ids[deleted]] = -1

    @property
    def summary(self) -> tuple[int, int]:
        """The number of rows and the sum of their revisions."""
        there = self._revision[self._revision >= 0]
        return int(there.size), int(there.sum(dtype=np.int64))
