"""Discards events in quarantine, with a reason."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.quarantine import EventState, Quarantine, RefusedEvent
from cdc.operations.desk.desk import Handler
from cdc.operations.desk.reporter import Reporter
from cdc.state.operation import Operation, TableResult

Recount = Callable[[str, int], None]
"""Called with a table and how many of its events are open, for the table's position to say so."""


def discard(quarantine: Quarantine, recount: Recount) -> Handler:
    """Return the handler of ``discard``; its options: reason, and offsets (JSON) or before.

    ``before`` is the time of the newest event to discard. Run again after a crash, the handler does
    the rest: an event that is settled already stays as it is.
    """

    def handle(operation: Operation, reporter: Reporter) -> None:
        reason = operation.options.get("reason", "").strip()
        if not reason:
            raise CdcError(
                ErrorKind.CONFIG,
                "events are not discarded without a reason",
                remedy="give one with --reason",
            )
        for table in reporter.remaining(operation.tables):
            reporter.safe_point()
            reporter.tell(table=table, phase="discarding")
            reporter.done(_discarded(quarantine, recount, operation, table, reason))

    return handle


def _discarded(
    quarantine: Quarantine, recount: Recount, operation: Operation, table: str, reason: str
) -> TableResult:
    events = _chosen(quarantine.rows(table, with_values=False), operation)
    settled = quarantine.settle(
        events,
        state=EventState.DISCARDED,
        by=operation.asked_by,
        note=reason,
        at=datetime.now(UTC),
    )
    still_open = quarantine.open_count(table)
    recount(table, still_open)
    note = f"{settled:,} event{'' if settled == 1 else 's'} discarded, {still_open:,} open"
    return TableResult(table=table, refused=still_open, note=note)


def _chosen(events: Sequence[RefusedEvent], operation: Operation) -> list[RefusedEvent]:
    """Return the events to discard; raise CONFIG for an offset without a refused event."""
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
            else "no event was chosen",
            remedy=f"wal2lake quarantine list {operation.tables[0]}",
        )
    return [event for event in events if event.offset in offsets]
