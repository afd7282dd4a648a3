"""Reads a captured table's events between two places, in order, with the readings among them.

The rows come from memory where the round has them, else from the log, some at a time. So a slice
may be as long as the log.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Final

from cdc.apply.local.arrow import log_events
from cdc.apply.local.change import LogEvent
from cdc.apply.local.decode import TableDecoder
from cdc.apply.local.not_local import NotLocalError
from cdc.apply.local.row_reader import RecordReader
from cdc.derive.log.decoding import Decoding
from cdc.derive.log.ends import Ends
from cdc.derive.log.event import Place, RowEvent
from cdc.derive.log.filled import RowsBefore, filled
from cdc.derive.log.lacking import refuse_lacking
from cdc.derive.log.topic_rows import TopicRows
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.events.structure.steps import READ_AGAIN
from cdc.events.transactions import END, Marker, is_marker_schema, marker
from cdc.kafka.registry_client import SchemaLookup
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.records.readings import Reading

Sliced = list[RowEvent] | Reading
_MARKERS: Final = "transaction"
"""The last part of the name of the topic of transaction markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReader:
    """Reads the log of one pipeline.

    ``prefix`` is that of its topics' names; ``placeholder`` is what the connector sends for a large
    value that did not change; ``readings_of`` returns those of a table, oldest first. Events that
    were written without one of the columns ``wanted`` are refused.
    """

    rows: TopicRows
    prefix: str
    placeholder: str
    schemas_of: SchemaLookup
    readings_of: Callable[[str], Sequence[Reading]]
    wanted: frozenset[str] = frozenset()

    def slice(
        self, schema: TableSchema, after: Place, upto: Place, before: RowsBefore
    ) -> Iterator[Sliced]:
        """Yield a table's events beyond one place, up to another, some at a time, in order.

        ``schema`` is the table's at ``upto``. A reading comes where the table has it: behind the
        events up to its offset. Its rows are at its ``path`` and ``version``: all of the table if
        it is ``whole``, else its difference (cdc/apply/difference/row_difference.py). In a new
        epoch the slice begins with a whole reading: what lies between is in no cut.

        ``before`` is asked for the rows of the next events when the caller is done with what was
        yielded before. Raises TABLE_STOPPED for an epoch without a whole reading, and for events
        that only Spark can read or that lack a column.
        """
        readings = self._readings(schema, after, upto)
        if upto.epoch != after.epoch:
            readings = _of_epoch(schema, upto.epoch, readings)
            after = replace(after, offset=readings[0].position.offset)
        decoding = self._decoding(schema, after, upto)
        try:
            for reading in readings:
                offset = reading.position.offset
                yield from self._events(decoding, schema, (after.offset, offset), before)
                yield reading
                after = replace(after, offset=max(after.offset, offset))
            yield from self._events(decoding, schema, (after.offset, upto.offset), before)
        except NotLocalError as error:
            raise CdcError(
                ErrorKind.TABLE_STOPPED, f"the events of {schema.table} cannot be read: {error}"
            ) from None

    def _events(
        self, decoding: Decoding, schema: TableSchema, between: tuple[int, int], before: RowsBefore
    ) -> Iterator[list[RowEvent]]:
        """Yield the events between two offsets."""
        stretches = self.rows.rows(schema.table.topic(self.prefix), *between)
        for events in _with_halves_together(map(log_events, stretches)):
            yield filled(decoding.decoded(events), schema, before)

    def _decoding(self, schema: TableSchema, after: Place, upto: Place) -> Decoding:
        ends = Ends(self.markers(after, upto), schema.table.topic(self.prefix))

        def decoder_of(schemas: Mapping[int, str]) -> TableDecoder:
            refuse_lacking(schema.table, self.wanted, schemas)
            return TableDecoder(schemas, schema, placeholder=self.placeholder)

        return Decoding(decoder_of, self.schemas_of, ends)

    def markers(self, after: Place, upto: Place) -> Iterator[Marker]:
        """Yield the END markers between two places, in order."""
        readers: dict[int | None, RecordReader | None] = {}
        topic = f"{self.prefix}.{_MARKERS}"
        for rows in self.rows.rows(topic, after.marker_offset, upto.marker_offset):
            for event in log_events(rows):
                number = event.value_schema_id
                if number not in readers:
                    readers[number] = self._marker_reader(number)
                reader = readers[number]
                record = None if reader is None else reader.read(event.value)[0]
                if record is not None and record["status"] == END:
                    yield marker(record, prefix=self.prefix)

    def _marker_reader(self, number: int | None) -> RecordReader | None:
        text = None if number is None else self.schemas_of([number]).get(number)
        return None if text is None or not is_marker_schema(text) else RecordReader(text)

    def _readings(self, schema: TableSchema, after: Place, upto: Place) -> list[Reading]:
        """Return the readings that the table got between two places; an image is none."""
        if after.reading == upto.reading:
            return []
        return [
            reading
            for reading in self.readings_of(str(schema.table))
            if after.reading < reading.number <= upto.reading and not reading.image
        ]


def place_at(row: LedgerRow, entry: TableEntry) -> Place:
    """Return how far a table has the log at a cut; ``entry`` is the cut's of the table."""
    return Place(
        epoch=row.epoch,
        offset=entry.offset,
        marker_offset=row.marker_offset,
        reading=entry.reading,
    )


def _with_halves_together(stretches: Iterable[list[LogEvent]]) -> Iterator[list[LogEvent]]:
    """Let the last event of a stretch go with the next one if it begins a change of a key."""
    waiting: list[LogEvent] = []
    for stretch, following in pairwise(chain(filter(None, stretches), [[]])):
        events = [*waiting, *stretch]
        end = len(events) - 1 if following and following[0].moved else len(events)
        waiting = events[end:]
        if end:
            yield events[:end]


def _of_epoch(schema: TableSchema, epoch: int, readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings of an epoch from its first whole one on."""
    mine = [reading for reading in readings if reading.position.epoch == epoch]
    first = next((number for number, one in enumerate(mine) if one.whole), None)
    if first is None:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"{schema.table} was not read in epoch {epoch}",
            remedy=READ_AGAIN,
        )
    return mine[first:]
