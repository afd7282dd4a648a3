"""The order in which the events of a table count: docs/decisions/0009-order.md.

It is the offset in the table's topic, within an epoch, and nothing that the connector says. One
partition and exactly-once delivery make it the order of commits; an LSN is that of a row's record,
which may be older than what was committed before it.
"""

from collections.abc import Iterable, Iterator

from cdc.events.envelope import ChangeEvent


def in_order(events: Iterable[ChangeEvent], after: int = -1) -> Iterator[ChangeEvent]:
    """Each event beyond offset ``after`` once, out of what a reader of one topic was given.

    A reader may be given any part of the topic again, but never one that begins beyond the place
    it had come to. So that place is all there is to remember: not what happened to which key, and
    nothing of rows that are gone.
    """
    for event in events:
        if event.offset > after:
            after = event.offset
            yield event
