"""Commits to a table of late rows by delta-rs: rows are only added, so that nothing is copied."""

import math
import time

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from cdc.derive.step.mark import USER_METADATA, Mark
from cdc.derive.step.upkeep import EVERY, HOUR, kept_properties
from cdc.failpoints import Failpoint, reach
from cdc.lake.files.delta import delta_table, storage_options
from cdc.lake.layout import lake_of
from cdc.lake.table.known_commit import known_commit
from cdc.lake.upkeep.control_tables import optimize, vacuum
from cdc.lake.upkeep.held import oldest_hold


def add_rows(path: str, rows: pa.Table, mark: Mark, kept_hours: int, *, anew: bool) -> None:
    """Add rows in one commit with the mark; with ``anew`` they are the whole table.

    Files of versions of so many last hours are kept.
    """
    properties = CommitProperties(custom_metadata={USER_METADATA: mark.metadata()})
    with known_commit(path, properties) as known:
        reach(Failpoint.BEFORE_LATE_COMMIT)
        write_deltalake(
            path,
            rows,
            mode="overwrite" if anew else "append",
            schema_mode="overwrite" if anew else "merge",
            configuration=kept_properties(kept_hours),
            commit_properties=known,
            storage_options=storage_options(path),
        )
    reach(Failpoint.AFTER_LATE_COMMIT)
    _keep_small(path, properties, kept_hours)


def _keep_small(path: str, properties: CommitProperties, kept_hours: int) -> None:
    """Combine small files and delete old ones where that is due."""
    table = delta_table(path)
    is_due = table.version() % EVERY == 0
    hours = _hours(path, kept_hours)
    if not optimize(path, table, properties, hours) and is_due:
        vacuum(path, table, properties, hours)


def _hours(path: str, kept: int) -> int:
    """Return how long files are kept: longer where somebody holds older versions."""
    hold = oldest_hold(lake_of(path))
    return kept if hold is None else max(kept, math.ceil((time.time() - hold) / HOUR) + 1)
