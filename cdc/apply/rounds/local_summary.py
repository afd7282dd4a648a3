"""Summaries of landings in memory, as ``cdc.apply.rounds.spark_summary`` makes them by Spark."""

import io
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.compute as pc

from cdc.apply.local.row_reader import RecordReader
from cdc.apply.rounds.summary import Group, Summary
from cdc.events.avro import HEADER
from cdc.events.schema import envelope_reader
from cdc.events.transactions import END, Marker, is_marker_schema, marker
from cdc.events.values.lsn import NO_LSN

_OPS: Final = frozenset("crudt")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_BLANKS: Final = "".join(map(chr, range(33)))  # what Spark's casts pass over
Place = tuple[int | None, bool, int | None]
"""Of an event: transaction, whether it is undecodable, and the lsn of a snapshot's read."""
_NOWHERE: Final[Place] = (None, True, None)


class PlaceReader:
    """Reads where events of one writer's schema belong, and passes over their rows."""

    def __init__(self, schema_json: str, reader_json: str) -> None:
        self._writer = fastavro.parse_schema(json.loads(schema_json))
        self._reader = fastavro.parse_schema(json.loads(reader_json))

    def place(self, message: bytes) -> Place:
        """Return the place of the event in a framed message."""
        body = io.BytesIO(message)
        body.seek(HEADER)
        try:
            event: Any = fastavro.schemaless_reader(
                body, self._writer, self._reader, handle_unicode_errors="replace"
            )
        except Exception:  # noqa: BLE001 - the decoder raises errors of any type
            return _NOWHERE
        return _place(event)


class LocalSummaries:
    """Summarises landings of one run; keeps the reader of each writer's schema.

    ``markers`` is the topic of transaction markers, ``prefix`` that of the topics' names.
    """

    def __init__(self, markers: str, prefix: str) -> None:
        self._markers = markers
        self._prefix = prefix
        self._places: dict[int, PlaceReader] = {}
        self._ends: dict[int, RecordReader] = {}

    def summary(self, rows: pa.Table, schemas: Mapping[int, str]) -> Summary:
        """Return the summary of rows of the log of one landing.

        Raises BAD_EVENT for an END marker that is not one.
        """
        self._learn(schemas)
        is_marker = pc.equal(rows["topic"], self._markers)
        is_event = pc.and_(pc.invert(is_marker), pc.is_valid(rows["value"]))
        return Summary(
            groups=self._groups(rows.filter(is_event), schemas),
            ends=self._found_ends(rows.filter(is_marker), schemas),
        )

    def _learn(self, schemas: Mapping[int, str]) -> None:
        """Make readers for new schemas; an id never changes its meaning."""
        for number, text in schemas.items():
            if number in self._places or number in self._ends:
                continue
            if (reader := envelope_reader(text)) is not None:
                self._places[number] = PlaceReader(text, reader)
            elif is_marker_schema(text):
                self._ends[number] = RecordReader(text)

    def _groups(self, events: pa.Table, schemas: Mapping[int, str]) -> list[Group]:
        counted: dict[tuple[str, Place], list[int]] = {}
        for topic, offset, value, number in _tuples(events):
            reader = self._places.get(number) if number in schemas else None
            place = _NOWHERE if reader is None else reader.place(value)
            group = counted.setdefault((topic, place), [0, offset, offset])
            group[0] += 1
            group[1], group[2] = min(group[1], offset), max(group[2], offset)
        return [Group(topic, *place, *facts) for (topic, place), facts in counted.items()]

    def _found_ends(
        self, markers: pa.Table, schemas: Mapping[int, str]
    ) -> list[tuple[int, Marker]]:
        ends = []
        for _, offset, value, number in _tuples(markers):
            reader = self._ends.get(number) if number in schemas else None
            record = None if reader is None or value is None else reader.read(value)[0]
            if record is not None and record["status"] == END:
                ends.append((offset, marker(record, prefix=self._prefix)))
        return sorted(ends, key=lambda end: end[0])


def _tuples(rows: pa.Table) -> Any:  # noqa: ANN401 - an iterator of topic, offset, value, schema
    names = ("topic", "offset", "value", "value_schema_id")
    return zip(*(rows[name].to_pylist() for name in names), strict=True)


def _place(event: Mapping[str, Any]) -> Place:
    transaction, source, op = event["transaction"], event["source"] or {}, event["op"]
    text = None if transaction is None else transaction["id"]
    txid = None if text is None else _number(text)
    is_torn = text is not None and txid is None
    if op not in _OPS or is_torn:
        return txid, True, None
    lsn = source.get("lsn")
    read_lsn = (NO_LSN if lsn is None else lsn) if op == "r" else None
    return txid, False, read_lsn


def _number(text: str) -> int | None:
    """Return the number before the first colon, as Spark's cast to BIGINT reads it."""
    found = text.partition(":")[0].strip(_BLANKS)
    if not _WHOLE.fullmatch(found):
        return None
    number = int(found)
    return number if -(2**63) <= number < 2**63 else None
