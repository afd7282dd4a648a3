"""The MERGE of delta-rs, which writes no deletion vectors: on a plain table."""

from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable

from bench.apply.driver import delta_summary
from bench.apply.on_spark import NAMES


class DeltaRsMerge:
    """Merges in this process, without Spark."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def apply(self, batch: Path, low: int, high: int) -> None:
        """Merge with literal bounds, as the tuned one."""
        values = {name: f"s.{name}" for name in NAMES}
        (
            DeltaTable(str(self._path))
            .merge(
                pq.read_table(batch),
                f"t.id = s.id AND t.id BETWEEN {low} AND {high}",
                source_alias="s",
                target_alias="t",
            )
            .when_matched_delete("s.deleted")
            .when_matched_update(values)
            .when_not_matched_insert(values, predicate="NOT s.deleted")
            .execute()
        )

    def summary(self) -> tuple[int, int]:
        """Return what delta-rs reads."""
        return delta_summary(self._path)
