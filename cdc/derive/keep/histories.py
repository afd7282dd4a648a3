"""Brings histories to the cuts of a running job, from its log and its readings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cdc.derive.definition.definition import Definition
from cdc.derive.history_step.bringing import HistoryStep
from cdc.derive.history_step.reach import NOT_KEPT, Kept, Reach
from cdc.derive.log.log_reader import LogReader, place_at
from cdc.derive.log.topic_rows import Recent, TopicRows
from cdc.derive.step.limits import Limits
from cdc.derive.step.mark import Mark
from cdc.derive.step.ready import Step
from cdc.derive.step.writer import TableWriter
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.registry_client import SchemaLookup
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.records.readings import Reading, readings_at
from cdc.lake.table import store
from cdc.lake.table.positions import NOTHING, Position, landed_position
from cdc.tables import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTables:
    """Makes the readers of the captured tables' log, and says what was deleted from it.

    ``prefix`` is that of the topics' names; ``placeholder`` is what the connector sends for a large
    value that did not change; ``readings_of`` returns those of a table, oldest first.
    """

    path: str
    prefix: str
    placeholder: str
    schemas_of: SchemaLookup
    readings_of: Callable[[str], Sequence[Reading]]

    def given_up(self, topic: str) -> int:
        """Return the last offset of a topic that was deleted from the log; -1 for none."""
        landed = landed_position(self.path)
        expired = {} if landed is None else landed.expired
        return expired.get(topic, NOTHING)[1]

    def reader(self, recent: Recent | None, wanted: frozenset[str] = frozenset()) -> LogReader:
        """Return what reads the log; ``recent`` is what of it is in memory.

        Events without one of the ``wanted`` columns are refused.
        """
        return LogReader(
            rows=TopicRows(path=self.path, recent=recent),
            prefix=self.prefix,
            placeholder=self.placeholder,
            schemas_of=self.schemas_of,
            readings_of=self.readings_of,
            wanted=wanted,
        )


class Histories:
    """Brings the histories of a job to each cut; only the thread that derives calls it."""

    def __init__(self, log: LoggedTables) -> None:
        self._log = log
        self._reached: dict[TableId, Reach] = {}

    def bring(
        self,
        definition: Definition,
        row: LedgerRow,
        recent: Recent | None,
        *,
        writer: TableWriter,
        mark: Mark,
        limits: Limits,
        anew: bool,
    ) -> Step:
        """Bring a history to the cut of ``row``; ``recent`` is what of the log is in memory."""
        (table,) = definition.inputs
        entry = _entry(row, table)
        schema = store.read_schema(entry.path, table, entry.version)
        assert schema is not None  # noqa: S101 - the cut names its version
        numbers = _numbers(entry)
        step, reach = HistoryStep(
            definition=definition,
            schema=schema,
            writer=writer,
            mark=mark,
            upto=place_at(row, entry),
            log=self._log.reader(recent, frozenset(numbers or schema.names)),
            kept=partial(self._kept, row, table),
            now=partial(_read_now, row, entry),
            limits=limits,
            numbers=numbers,
        ).bring(since=self._reached.pop(definition.table, None), anew=anew)
        self._reached[definition.table] = reach
        return step

    def passed(self, definition: Definition, row: LedgerRow) -> None:
        """Note that the table has no other rows at the cut, so that the log is not searched."""
        reach = self._reached.get(definition.table)
        if reach is not None:
            upto = place_at(row, _entry(row, definition.inputs[0]))
            self._reached[definition.table] = replace(reach, upto=upto, lsn=row.lsn)

    def _kept(self, row: LedgerRow, table: TableId) -> Kept:
        topic, markers = table.topic(self._log.prefix), f"{self._log.prefix}.transaction"
        return Kept(
            offset=self._log.given_up(topic),
            marker_offset=self._log.given_up(markers),
            readings=readings_at(self._log.readings_of(str(table)), row, str(table)),
        )


def _entry(row: LedgerRow, table: TableId) -> TableEntry:
    entry = row.entry(str(table))
    if entry is None:
        raise CdcError(ErrorKind.TABLE_STOPPED, f"{table} is not captured")
    return entry


def _numbers(entry: TableEntry) -> dict[str, int]:
    """Return the columns that every event has, of those of now, with their numbers in the source.

    None are known of a table whose structure is not recorded.
    """
    structure = store.read_structure(entry.path, entry.version)
    return {} if structure is None else {one.name: one.number for one in structure.followed}


def _read_now(row: LedgerRow, entry: TableEntry) -> Reading:
    """Return the table at a cut as a reading, which nobody keeps."""
    return Reading(
        number=NOT_KEPT,
        table=entry.table,
        whole=True,
        path=entry.path,
        version=entry.version,
        position=Position(epoch=row.epoch, offset=entry.offset, reading=entry.reading),
        lsn=row.lsn or 0,
        cut=row.cut,
        landing=row.landing_floor,
        operation="",
        made_at=row.published_at,
    )
