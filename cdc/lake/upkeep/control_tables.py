"""What keeps the tables small that the job writes without Spark: ledger and quarantine."""

from math import inf
from typing import Final

from deltalake import CommitProperties, DeltaTable

from cdc.failpoints import Failpoint, reach
from cdc.lake.table.positions import file_sizes
from cdc.lake.upkeep.small_files import rewritten

FILES: Final = 32
"""So many data files are put together; one is added with every commit."""

RETENTION_HOURS: Final = 168
"""How long files of older versions are kept, for readers that opened one of them."""


def optimize(table: DeltaTable, properties: CommitProperties | None = None) -> bool:
    """Rewrite files into one once there are as many as ``FILES``; whether that was done.

    Not those that are larger than twice all others (cdc/lake/upkeep/small_files.py).

    ``properties`` goes into each commit made here, so that the newest one still says what the
    last append said.
    """
    gone = rewritten(file_sizes(table), FILES, inf)
    if not gone:
        return False
    reach(Failpoint.BEFORE_CONTROL_OPTIMIZE)
    # What is below the target is rewritten: no other is, since it is larger than all these.
    table.optimize.compact(target_size=sum(gone) + 1, commit_properties=properties)
    reach(Failpoint.AFTER_CONTROL_OPTIMIZE)
    reach(Failpoint.BEFORE_CONTROL_VACUUM)
    table.vacuum(RETENTION_HOURS, dry_run=False, commit_properties=properties)
    reach(Failpoint.AFTER_CONTROL_VACUUM)
    return True
