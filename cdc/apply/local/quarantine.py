"""Puts the events that a local batch refuses into quarantine, before its rows are written."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from cdc.apply.local.batch import Outcome
from cdc.apply.refused.refused_events import refused_events
from cdc.lake.records.quarantine import Quarantine
from cdc.tables import TableId

logger = structlog.get_logger(__name__)


def refuse(rows: pa.Table, outcome: Outcome, table: TableId, quarantine: Quarantine) -> Outcome:
    """Record the refused events; return the outcome with their count in its position.

    ``rows`` are those of the log that the outcome was made of. Recording an event twice changes
    nothing.
    """
    count = len(outcome.refused)
    if not count:
        return outcome
    reasons = dict(zip(*outcome.refused.to_pydict().values(), strict=True))
    mine = rows.filter(pc.is_in(rows["offset"], outcome.refused["offset"])).to_pylist()
    given = [{**row, "reason": reasons[row["offset"]]} for row in mine]
    quarantine.add(refused_events(given, table, outcome.position.epoch))
    logger.warning("events refused", table=str(table), events=count)
    open_now = quarantine.open_count(str(table))
    return replace(outcome, position=replace(outcome.position, refused=open_now))
