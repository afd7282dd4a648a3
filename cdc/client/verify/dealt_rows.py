"""Deal the rows of both sides into parts on disk, by a hash of their key.

A row and its counterpart end up in the same part. However many parts a table needs, few files are
open at a time: a part that is too large is dealt again, by the next digits of the hash.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

WEIGHT: Final = "weight"
"""The last column of a dealt table: 1 for a row of the source, -1 for one of the lake."""
FAN: Final = 128
"""How many files are written at a time: some systems allow a process no more than 256."""
HASHES: Final = 1 << 32
"""How many different hashes there are: a part cannot be dealt further than that."""
_CHUNK_BYTES: Final = 4 << 20  # read at a time from a part that is dealt again


class Part:
    """Keeps the rows of one part in a file of their own."""

    def __init__(self, path: Path) -> None:
        self.rows = 0
        self.bytes = 0  # in memory
        self._path = path
        self._file: pa.OSFile | None = None
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, rows: pa.Table) -> None:
        """Append the rows to the file."""
        if self._writer is None:
            self._file = pa.OSFile(str(self._path), "wb")
            self._writer = pa.ipc.new_stream(self._file, rows.schema)
        self._writer.write_table(rows)
        self.rows += rows.num_rows
        self.bytes += rows.nbytes

    def tables(self, size: int = _CHUNK_BYTES) -> Iterator[pa.Table]:
        """Yield all rows, about ``size`` bytes at a time."""
        if self.rows:
            with pa.memory_map(str(self._path)) as file, pa.ipc.open_stream(file) as reader:
                yield from _gathered(reader, size)

    def close(self) -> None:
        """Finish the file; after this no row can be added."""
        if self._file is not None and self._writer is not None:
            with self._file:
                self._writer.close()
        self._file = self._writer = None

    def remove(self) -> None:
        """Delete the file, even if it cannot be finished."""
        with suppress(OSError):
            self.close()
        self._path.unlink(missing_ok=True)


@contextmanager
def dealt(
    tables: Iterable[pa.Table], number: int, key: Sequence[int], scratch: Path, *, divisor: int = 1
) -> Iterator[list[Part]]:
    """Yield ``number`` parts of the rows, but at most ``FAN``; delete their files afterwards.

    ``divisor`` is the product of the numbers of parts that these rows were dealt into before.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(dir=scratch)))
        parts = [Part(folder / f"{place}.arrow") for place in range(min(number, FAN))]
        for part in parts:
            stack.callback(part.remove)
        for table in tables:
            _deal(table, key, parts, divisor)
        for part in parts:
            part.close()
        yield parts


def weighted(tables: Iterable[pa.Table], weight: int) -> Iterator[pa.Table]:
    """Yield the tables with a last column ``WEIGHT`` that holds the weight."""
    for table in tables:
        yield table.append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), table.num_rows))


def _deal(rows: pa.Table, key: Sequence[int], parts: Sequence[Part], divisor: int) -> None:
    if len(parts) == 1:
        parts[0].add(rows)
    if not rows.num_rows or len(parts) == 1:
        return
    numbers = pa.array(_numbers(rows, key, len(parts), divisor), pa.int32())
    order = pc.sort_indices(numbers)
    together = rows.take(order)
    runs = pc.run_end_encode(numbers.take(order))
    first = 0
    for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        parts[number].add(together.slice(first, end - first))
        first = end


def _numbers(rows: pa.Table, key: Sequence[int], parts: int, divisor: int) -> Iterator[int]:
    """Yield the number of each row's part, from its key or, without a key, the whole row."""
    positions = key or range(rows.num_columns - 1)
    joined = pc.binary_join_element_wise(
        *(pc.fill_null(rows.column(position), "") for position in positions),
        pa.scalar("\x1f", pa.large_string()),
    )
    return (zlib.crc32(text.encode()) // divisor % parts for text in joined.to_pylist())


def _gathered(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    gathered: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        gathered.append(batch)
        held += batch.nbytes
        if held >= size:
            yield pa.Table.from_batches(gathered)
            gathered, held = [], 0
    if gathered:
        yield pa.Table.from_batches(gathered)
