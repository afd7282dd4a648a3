"""What the job does to its quarantine when it is asked: events are given up, with a reason."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.quarantine import EventState, Quarantine, RefusedEvent
from cdc.operations.desk.desk import Handler
from cdc.operations.desk.reporter import Reporter
from cdc.state.operation import Operation, TableResult

Recount = Callable[[str, int], None]
"""Hears a table and how many of its events are open: its position is to say so from now on."""


def discard(quarantine: Quarantine, recount: Recount) -> Handler:
    """The handler of ``discard``; options: reason, and offsets (JSON) or before.

    ``before`` is the time of the newest event that is meant. Run again after a crash the handler
    does what is left: an event that is settled stays as it is.
    """

    def handle(operation: Operation, reporter: Reporter) -> None:
        reason = operation.options.get("reason", "").strip()
        if not reason:
            raise CdcError(
                ErrorKind.CONFIG,
                "events are not discarded without a reason",
                remedy="say why with --reason",
            )
        for table in reporter.left(operation.tables):
            reporter.point()
            reporter.tell(table=table, phase="discarding")
            reporter.done(_discarded(quarantine, recount, operation, table, reason))

    return handle


def _discarded(
    quarantine: Quarantine, recount: Recount, operation: Operation, table: str, reason: str
) -> TableResult:
    events = _meant(quarantine.rows(table, with_values=False), operation)
    settled = quarantine.settle(
        events,
        state=EventState.DISCARDED,
        by=operation.asked_by,
        note=reason,
        at=datetime.now(UTC),
    )
    left = quarantine.open_count(table)
    recount(table, left)
    said = f"{settled:,} event{'' if settled == 1 else 's'} discarded, {left:,} open"
    return TableResult(table=table, refused=left, note=said)


def _meant(events: Sequence[RefusedEvent], operation: Operation) -> list[RefusedEvent]:
    """Raises CONFIG for an offset at which the table has no refused event."""
    if before := operation.options.get("before"):
        newest = datetime.fromisoformat(before)
        return [event for event in events if event.quarantined_at <= newest]
    offsets = set(json.loads(operation.options.get("offsets", "[]")))
    missing = sorted(offsets - {event.offset for event in events})
    if missing or not offsets:
        raise CdcError(
            ErrorKind.CONFIG,
            f"the quarantine has no event at offset {missing[0]} of {operation.tables[0]}"
            if missing
            else "no event was named to be discarded",
            remedy=f"wal2lake quarantine list {operation.tables[0]}",
        )
    return [event for event in events if event.offset in offsets]
