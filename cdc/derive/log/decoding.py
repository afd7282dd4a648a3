"""Decode a table's events, each with the transaction that it belongs to. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from cdc.apply.local.change import LogEvent
from cdc.apply.local.decode import TableDecoder
from cdc.apply.local.row_reader import Record, event_op
from cdc.derive.log.ends import Ends
from cdc.derive.log.event import Decoded
from cdc.events.transactions import txid_of

DecoderOf = Callable[[Mapping[int, str]], TableDecoder]
"""Returns the decoder of events with these writer schemas, by id."""


class Decoding:
    """Decodes the events of one slice, some at a time."""

    def __init__(
        self,
        decoder_of: DecoderOf,
        schemas_of: Callable[[Iterable[int]], Mapping[int, str]],
        ends: Ends,
    ) -> None:
        """Take where writer schemas come from, and the END markers of the slice."""
        self._decoder_of, self._schemas_of, self._ends = decoder_of, schemas_of, ends
        self._schemas: dict[int, str] = {}
        self._decoder: TableDecoder | None = None

    def decoded(self, events: Sequence[LogEvent]) -> list[Decoded]:
        """Return the changes of the next events, in order."""
        decoder = self._decoder_for(events)
        found = [decoder.decode_one(event) for event in events]
        txids = [_txid(record) for record, _ in found]
        known = self._ends.of(txids)
        return [
            Decoded(change, known.get(txid) if txid is not None else None, _read_lsn(record))
            for (record, changes), txid in zip(found, txids, strict=True)
            for change in changes
        ]

    def _decoder_for(self, events: Sequence[LogEvent]) -> TableDecoder:
        """Return a decoder that knows the writer schemas of these events and of those before."""
        ids = {event.value_schema_id for event in events} - self._schemas.keys() - {None}
        new = self._schemas_of(sorted(number for number in ids if number is not None))
        if new or self._decoder is None:
            self._schemas |= new
            self._decoder = self._decoder_of(self._schemas)
        return self._decoder


def _txid(record: Record | None) -> int | None:
    """Return the transaction of an event; None for a snapshot's, and for what is no event."""
    if record is None or event_op(record) is None or record["transaction"] is None:
        return None
    return txid_of(record["transaction"]["id"])


def _read_lsn(record: Record | None) -> int | None:
    if record is None or event_op(record) != "r":
        return None
    lsn: int | None = (record["source"] or {}).get("lsn")
    return lsn
