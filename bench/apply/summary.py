"""What a table holds, in two numbers, read by delta-rs: it shares no code with what wrote it."""

from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

SUMMARY: Final = "select count(*) as rows, sum(revision) as revisions from t"


def delta_summary(path: Path) -> tuple[int, int]:
    """Return the number of rows and the sum of their revisions, read by delta-rs."""
    query = QueryBuilder().register("t", DeltaTable(str(path))).execute(SUMMARY)
    (row,) = pa.table(query.read_all()).to_pylist()
    return int(row["rows"]), int(row["revisions"] or 0)
