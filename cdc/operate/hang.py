"""Where a pipeline hangs, in one sentence: for commands that waited in vain."""

from cdc.config import Config
from cdc.operate.status import Status, status
from cdc.tables import TableState


def where_it_hangs(config: Config) -> str:
    return "; ".join(_reasons(status(config)))


def _reasons(now: Status) -> list[str]:
    """What is wrong, from the source to the lake; how far it is when nothing is."""
    reasons = list(now.unreachable)
    if now.source is not None and not now.source.slot_active:
        reasons.append("nobody reads the replication slot")
    if now.connector is not None and now.connector.state != "RUNNING":
        because = f": {now.connector.reason}" if now.connector.reason else ""
        reasons.append(f"the connector is {now.connector.state}{because}")
    if not now.job.alive:
        reasons.append("the job is not running")
    elif now.job.state != "applying":
        reasons.append(f"the job is {now.job.state}")
    if now.job.alarm:
        reasons.append(now.job.alarm)
    reasons += [
        f"table {table.table} is {table.lag_offsets} offsets behind"
        for table in now.tables
        if table.lag_offsets
    ]
    reasons += [
        f"table {table.table} is being read again"
        for table in now.tables
        if table.state == TableState.RESNAPSHOTTING.value
    ]
    return reasons or [f"every part answers and the newest cut is {now.cut}"]
