"""Commits a difference to a derived table, with its mark, by delta-rs."""

from typing import Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from cdc.derive.step.difference import GONE, Difference
from cdc.derive.step.mark import Mark
from cdc.events.values.sql_text import fusion_name
from cdc.failpoints import Failpoint, reach
from cdc.lake.table.known_commit import known_commit
from cdc.lake.table.merge_plan import COPY, ROW_HASH

_SAME: Final = " AND ".join(f"t.{name} = s.{name}" for name in (ROW_HASH, COPY))


def commit(
    path: str, table: DeltaTable | None, difference: Difference, mark: Mark, kept_hours: int
) -> None:
    """Add and remove the rows in one commit; its log is kept for so many hours.

    Without a ``table`` the rows become the whole table, whatever is at the path.
    """
    with known_commit(path, mark.properties()) as known:
        reach(Failpoint.BEFORE_DERIVED_COMMIT)
        if table is None:
            write_deltalake(
                path,
                _added(difference.changes),
                mode="overwrite",
                schema_mode="overwrite",
                configuration=table_properties(kept_hours),
                commit_properties=known,
            )
        else:
            _merge(table, difference.changes, known)
    reach(Failpoint.AFTER_DERIVED_COMMIT)


def table_properties(kept_hours: int) -> dict[str, str]:
    """Return the properties of a derived table whose log is kept for so many hours."""
    kept = f"interval {kept_hours:d} hours"
    return {
        "delta.checkpointInterval": "50",
        "delta.logRetentionDuration": kept,
        "delta.deletedFileRetentionDuration": kept,
    }


def _merge(table: DeltaTable, changes: pa.Table, known: CommitProperties | None) -> None:
    columns = [name for name in changes.column_names if name != GONE]
    inserted = {fusion_name(name): f"s.{fusion_name(name)}" for name in columns}
    (
        table.merge(changes, _SAME, source_alias="s", target_alias="t", commit_properties=known)
        .when_matched_delete(f"s.{GONE}")
        .when_not_matched_insert(inserted, f"NOT s.{GONE}")
        .execute()
    )


def _added(changes: pa.Table) -> pa.Table:
    return changes.filter(pa.compute.invert(changes.column(GONE))).drop_columns([GONE])
