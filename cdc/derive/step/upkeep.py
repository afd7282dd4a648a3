"""Keeps a derived table small: few files, and none that no kept version needs."""

import math
import time
from typing import Final

from deltalake import CommitProperties, DeltaTable

from cdc.lake.layout import lake_of
from cdc.lake.upkeep.control_tables import optimize, vacuum
from cdc.lake.upkeep.held import oldest_hold

EVERY: Final = 50
"""How many versions pass between two searches for files that are needed no more."""
HOUR: Final = 3600


def keep_small(path: str, properties: CommitProperties, kept_hours: int) -> int:
    """Combine small files and delete old ones where that is due; return the newest version."""
    table = DeltaTable(path)
    is_due = table.version() % EVERY == 0
    hours = _hours(path, kept_hours)
    if not optimize(path, table, properties, hours) and is_due:
        vacuum(path, table, properties, hours)
    return DeltaTable(path).version()


def _hours(path: str, kept: int) -> int:
    """Return how long files are kept: longer where somebody holds older versions."""
    hold = oldest_hold(lake_of(path))
    return kept if hold is None else max(kept, math.ceil((time.time() - hold) / HOUR) + 1)
