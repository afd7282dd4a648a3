"""Say in one sentence why a command waited in vain for the pipeline."""

from cdc.client.status.status import Status, status
from cdc.client.status.status_findings import findings
from cdc.config import Config
from cdc.tables import TableState


def where_it_hangs(config: Config) -> str:
    """Return the problems of the pipeline, the worst first; without any, its newest cut."""
    return "; ".join(_reasons(status(config)))


def _reasons(now: Status) -> list[str]:
    reasons = [finding.what for finding in findings(now)]
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
    return reasons or [f"every component answers, and the newest cut is {now.cut}"]
