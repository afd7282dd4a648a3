"""Say what the configuration allows one step, in the job and in a client."""

import math
import os
from typing import Final

from cdc.config import Config
from cdc.derive.step.limits import Limits

_LANES: Final = 2
"""More would share the memory out too finely."""


def limits(config: Config) -> Limits:
    """Return what one step may take; what is large is calculated here."""
    return Limits(
        memory_mb=config.derived.memory_mb,
        full_rows=config.derived.full_rows,
        kept_hours=max(1, math.ceil(config.job.vacuum_retention_hours or 0)),
        scratch=config.state_dir / "derived",
        cross_check=config.derived.cross_check,
        measured=not config.derived.cross_check,
        lanes=min(_LANES, os.cpu_count() or 1),
    )
