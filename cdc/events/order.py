"""Order the events of a table (docs/decisions/0009-order.md).

Within an epoch, the order is that of offsets in the table's topic, and of nothing the connector
writes. One partition and exactly-once delivery make it the order of commits. An LSN would not do:
it is that of the row's WAL record, which may be older than changes committed earlier.
"""

from collections.abc import Iterable, Iterator

from cdc.events.envelope import ChangeEvent


def in_order(events: Iterable[ChangeEvent], after: int = -1) -> Iterator[ChangeEvent]:
    """Yield each event beyond offset ``after`` once, from what a reader of one topic receives.

    A reader may receive any part of the topic again, but never skips ahead of where it was. So the
    offset reached is all it has to remember: nothing about keys or deleted rows.
    """
    for event in events:
        if event.offset > after:
            after = event.offset
            yield event
