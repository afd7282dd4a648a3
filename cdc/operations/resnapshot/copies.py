"""Numbers the copies of equal rows of a table without a key, as it is read.

``whole_rows`` of ``cdc.apply.difference.row_difference`` is the same in Spark: who changes one
changes the other.
"""

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from cdc.events.schema import TableSchema
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.lake.table.plain_values import plain_values
from cdc.lake.table.row_hash import row_digest
from cdc.tables import TableMode


@dataclass(frozen=True, slots=True)
class Copies:
    """Numbers the copies in all rows of one table; used by one thread."""

    schema: TableSchema
    _seen: Counter[str] = field(default_factory=Counter)

    def numbered(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the columns that a table of this mode has for its copies."""
        if self.schema.mode is not TableMode.MULTISET:
            return rows
        digest = row_digest(self.schema)
        columns = [plain_values(rows.column(name)) for name in self.schema.names]
        digests = list(map(digest, zip(*columns, strict=True)))
        numbers = list(map(self._number, digests))
        hashed = rows.append_column(ROW_HASH, pa.array(digests, pa.string()))
        return hashed.append_column(COPY, pa.array(numbers, pa.int64()))

    def _number(self, digest: str) -> int:
        self._seen[digest] += 1
        return self._seen[digest]
