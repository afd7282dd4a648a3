"""Summarizes landings in memory, as ``cdc.apply.rounds.spark_summary`` does by Spark."""

import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc.apply.changes.casts import BLANKS
from cdc.apply.local.row_reader import RecordReader, event_op
from cdc.apply.rounds.summary import Group, Summary, snapshots
from cdc.events.schema import envelope_reader
from cdc.events.transactions import END, Marker, is_marker_schema, marker
from cdc.events.values.lsn import NO_LSN

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
Place = tuple[int | None, bool, int | None]
"""Of an event: transaction, whether it is undecodable, and the lsn of a snapshot's read."""
_NOWHERE: Final[Place] = (None, True, None)


class LocalSummaries:
    """Summarises landings of one run; keeps the reader of each writer's schema.

    ``markers`` is the topic of transaction markers, ``prefix`` that of the topics' names.
    """

    def __init__(self, markers: str, prefix: str) -> None:
        self._markers = markers
        self._prefix = prefix
        self._events: dict[int, RecordReader] = {}
        self._ends: dict[int, RecordReader] = {}

    def summary(self, rows: pa.Table, schemas: Mapping[int, str]) -> Summary:
        """Return the summary of rows of the log of one landing.

        Raises BAD_EVENT for an END marker that is not one, and NotLocalError for a writer's schema
        that only Spark can read.
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
            if number in self._events or number in self._ends:
                continue
            if envelope_reader(text) is not None:
                self._events[number] = RecordReader(text)
            elif is_marker_schema(text):
                self._ends[number] = RecordReader(text)

    def _groups(self, events: pa.Table, schemas: Mapping[int, str]) -> list[Group]:
        counted: dict[tuple[str, Place], list[int]] = {}
        for topic, offset, value, number in _tuples(events):
            reader = self._events.get(number) if number in schemas else None
            place = _NOWHERE if reader is None else _place(reader.read(value)[0])
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


def local_snapshots(rows: pa.Table, schemas: Mapping[int, str]) -> dict[str, frozenset[int]]:
    """Return the lsns of the snapshots whose reads are among rows of tables' topics, by topic.

    Raises NotLocalError for a writer's schema that only Spark can read.
    """
    return snapshots(LocalSummaries("", "").summary(rows, schemas).groups)


def _tuples(rows: pa.Table) -> Any:  # noqa: ANN401 - an iterator of topic, offset, value, schema
    names = ("topic", "offset", "value", "value_schema_id")
    return zip(*(rows[name].to_pylist() for name in names), strict=True)


def _place(event: Mapping[str, Any] | None) -> Place:
    if event is None:
        return _NOWHERE
    transaction, op = event["transaction"], event_op(event)
    txid = None if transaction is None else _number(transaction["id"])
    if op != "r":
        return txid, op is None, None
    lsn = (event["source"] or {}).get("lsn")
    return txid, False, NO_LSN if lsn is None else lsn


def _number(text: str) -> int | None:
    """Return the number before the first colon, as Spark's cast to BIGINT reads it."""
    found = text.partition(":")[0].strip(BLANKS)
    if not _WHOLE.fullmatch(found):
        return None
    number = int(found)
    return number if -(2**63) <= number < 2**63 else None
