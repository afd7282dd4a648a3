"""What keeps the tables small that the job writes without Spark: ledger and quarantine."""

from typing import Final

from deltalake import CommitProperties, DeltaTable

from cdc.failpoints import Failpoint, reach

FILES: Final = 32
"""The most data files such a table has: one is added with every commit."""

RETENTION_HOURS: Final = 168
"""How long files of older versions are kept, for readers that opened one of them."""


def optimize(table: DeltaTable, properties: CommitProperties | None = None) -> bool:
    """Rewrite the files into one once there are as many as ``FILES``; whether that was done.

    ``properties`` goes into each commit made here, so that the newest one still says what the
    last append said.
    """
    if len(table.file_uris()) < FILES:
        return False
    reach(Failpoint.BEFORE_CONTROL_OPTIMIZE)
    table.optimize.compact(commit_properties=properties)
    reach(Failpoint.AFTER_CONTROL_OPTIMIZE)
    reach(Failpoint.BEFORE_CONTROL_VACUUM)
    table.vacuum(RETENTION_HOURS, dry_run=False, commit_properties=properties)
    reach(Failpoint.AFTER_CONTROL_VACUUM)
    return True
