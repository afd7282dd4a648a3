"""Settles rows that an interrupted attempt had refused, once the table has another reading."""

from cdc.apply.table.applied_table import AppliedTable
from cdc.operations.desk.context import JobContext
from cdc.operations.resnapshot.read import newest_number
from cdc.operations.resnapshot.result import settle
from cdc.state.operation import Operation


def settle_earlier(context: JobContext, operation: Operation, live: AppliedTable) -> None:
    """Settle the table's refused rows of readings before the one that it holds."""
    events = context.quarantine.rows(str(live.schema.table), only_open=True, with_values=False)
    read = [event for event in events if event.offset < 0]
    earlier = [event for event in read if newest_number([event]) < live.position.reading]
    settle(context, operation, earlier)
