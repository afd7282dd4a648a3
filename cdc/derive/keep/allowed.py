"""Say what the configuration allows one step, in the job and in a client."""

import math

from cdc.config import Config
from cdc.derive.step.limits import Limits


def limits(config: Config) -> Limits:
    """Return what one step may take; what is large is calculated here."""
    return Limits(
        memory_mb=config.derived.memory_mb,
        full_rows=config.derived.full_rows,
        kept_hours=max(1, math.ceil(config.job.vacuum_retention_hours or 0)),
        scratch=config.state_dir / "derived",
        cross_check=config.derived.cross_check,
        measured=not config.derived.cross_check,
    )
