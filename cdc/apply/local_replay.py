"""Applies a table's last few events from the log again, without Spark.

A table comes back to the rounds after an operation, and they wait for it. Meanwhile few events have
landed; Spark would be asked several times for them, seconds each.
"""

import pyarrow.compute as pc
import structlog

from cdc.apply.epoch_log import PinnedLog
from cdc.apply.local.not_local import NotLocalError
from cdc.apply.rounds.last_cut import LastCut
from cdc.apply.rounds.local_summary import local_snapshots
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.event_applier import Stretch
from cdc.apply.table.structure_notes import PlacedNote
from cdc.land.log_rows import LogRows
from cdc.land.read_back import events_of

logger = structlog.get_logger(__name__)


def replayed_here(
    log: PinnedLog, topic: str, cut: LastCut, notes: list[PlacedNote], table: AppliedTable
) -> bool:
    """Bring the table to the cut like ``replay``, if its events are few; return whether they were.

    ``notes`` are the structure changes inside the cut. A table that cannot go on stops. Nothing is
    done if the events are left to Spark.
    """
    after, upto = table.position.offset, cut.offsets[topic]
    most = min(log.log.budget, log.log.small.most)
    events = events_of(log.log.path, topic, after, upto, most=most)
    if events is None:
        return False
    schemas = log.log.schemas_of(set(events["value_schema_id"].unique().to_pylist()) - {None})
    try:
        snapshots = local_snapshots(events, schemas)
    except NotLocalError:
        return False
    logger.info("replaying", table=str(table.schema.table), events=len(events))
    frame = LogRows(lambda: log.rows).of_topic(topic).between(after, upto).frame
    rows = LogRows(frame, events)
    table.remember_snapshot(snapshots.get(topic, frozenset()))
    if table.following:
        stretch = Stretch(
            rows=rows,
            topic=topic,
            upto=pc.max(events["offset"]).as_py() if len(events) else after,
            schemas=schemas,
            notes=table.bind_notes(notes, rows, schemas),
            snapshot_end=cut.row.snapshot_end,
        )
        table.apply(stretch)
    return True
