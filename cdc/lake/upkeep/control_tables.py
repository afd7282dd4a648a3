"""Keeps the tables small that the job writes without Spark, such as ledger and quarantine."""

from math import inf
from typing import Final

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties

from cdc.failpoints import Failpoint, reach
from cdc.lake.layout import is_local
from cdc.lake.table.known_commit import known_commit
from cdc.lake.table.positions import file_sizes
from cdc.lake.upkeep.compacted import compact_in_store
from cdc.lake.upkeep.small_files import rewritten

FILES: Final = 32
"""The fewest data files that are rewritten into one; every commit adds one."""

RETENTION_HOURS: Final = 1
"""How long files of old versions are kept, for readers that have opened one."""
KEPT: Final = {
    "delta.logRetentionDuration": f"interval {RETENTION_HOURS} hours",
    "delta.deletedFileRetentionDuration": f"interval {RETENTION_HOURS} hours",
}
"""Properties of a table with many commits: nobody opens an old version of it by its number."""


def combine(
    path: str,
    table: DeltaTable,
    sizes: list[int],
    properties: CommitProperties | None = None,
    hooks: PostCommitHookProperties | None = None,
) -> None:
    """Make one file of those with these sizes, which ``rewritten`` has chosen, in one commit."""
    reach(Failpoint.BEFORE_CONTROL_OPTIMIZE)
    if is_local(path):
        # Delta rewrites what is below the target size; other files are larger than these together.
        table.optimize.compact(
            target_size=sum(sizes) + 1,
            commit_properties=properties,
            post_commithook_properties=hooks,
        )
    else:
        compact_in_store(path, len(sizes), (properties and properties.custom_metadata) or {})
        table.update_incremental()
    reach(Failpoint.AFTER_CONTROL_OPTIMIZE)


def optimize(
    path: str,
    table: DeltaTable,
    properties: CommitProperties | None = None,
    hours: int = RETENTION_HOURS,
) -> bool:
    """Rewrite small files into one and vacuum; return whether there were enough (``FILES``).

    A file larger than twice all the others is left alone (cdc/lake/upkeep/small_files.py).

    ``properties`` goes into each commit made here, so that the newest one still has the metadata
    of the last append.
    """
    replaced = rewritten(file_sizes(table), FILES, inf)
    if not replaced:
        return False
    combine(path, table, replaced, properties)
    vacuum(path, table, properties, hours)
    return True


def vacuum(
    path: str,
    table: DeltaTable,
    properties: CommitProperties | None = None,
    hours: int = RETENTION_HOURS,
) -> None:
    """Delete the files that no version of so many last hours has."""
    reach(Failpoint.BEFORE_CONTROL_VACUUM)
    with known_commit(path, properties) as known:
        table.vacuum(
            hours,
            dry_run=False,
            enforce_retention_duration=False,  # the table may still have Delta's usual week
            full=True,  # otherwise only files are found that a checkpoint still mentions
            commit_properties=known,
        )
    reach(Failpoint.AFTER_CONTROL_VACUUM)
