"""Where a pipeline hangs, in one sentence: for commands that waited in vain."""

from cdc.client.status.findings import findings
from cdc.client.status.status import Status, status
from cdc.config import Config
from cdc.tables import TableState


def where_it_hangs(config: Config) -> str:
    return "; ".join(_reasons(status(config)))


def _reasons(now: Status) -> list[str]:
    """What is wrong, the worst first; how far it is when nothing is."""
    reasons = [each.what for each in findings(now)]
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
