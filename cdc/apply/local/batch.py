"""Makes of the events of one table up to a cut what one commit writes, without Spark.

It is what ``cdc.apply.table.batch`` does, but it writes nothing: the caller puts the refused events
into quarantine first, and then rows and position into the table in one commit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from cdc.apply.changes.reasons import NO_ROW_TO_KEEP_FROM
from cdc.apply.local import arrow
from cdc.apply.local.change import Change, Key
from cdc.apply.local.changed_keys import resolve
from cdc.apply.local.decode import TableDecoder
from cdc.apply.local.lake_rows import LakeRows, NoRows
from cdc.apply.local.multiset import CopyRow, copy_rows, net_copies
from cdc.apply.local.not_local import NotLocalError, why_not_local
from cdc.apply.local.reduce import Overview, latest_per_key, overview
from cdc.apply.refused import too_many_refused
from cdc.config import Job
from cdc.events.schema import TableSchema
from cdc.lake.table.merge_plan import BY_OPERATION, COPY, OFFSET, ROW_HASH
from cdc.lake.table.positions import Position
from cdc.lake.table.row_hash import row_digest
from cdc.observe.stage_times import Stage, StageTimes
from cdc.tables import TableMode

Reasons = dict[int, str]
"""Why events are refused, by offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Hold what one commit writes.

    ``upserts`` has whole rows with the stored columns; ``deletes`` the columns that identify a row
    of the lake, and the event's offset: a row that does not exist is not an error. Both are empty
    or new rows only if the table has no row with their key. ``refused`` has one row per event,
    with offset and reason. In ``position`` only ``refused``, the count of open events in the
    quarantine, is still that of before.
    """

    position: Position
    truncated: bool  # the table is emptied before the rows are written
    upserts: pa.Table
    deletes: pa.Table
    refused: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBatch:
    """Works out what one commit writes to a table; ``lake`` looks up its rows before the commit."""

    schema: TableSchema
    position: Position
    decoder: TableDecoder
    lake: LakeRows
    policy: Job
    stages: StageTimes = field(default_factory=StageTimes)

    def outcome(self, rows: pa.Table, upto: int) -> Outcome:
        """Return what rows of the log, all of the table's topic, make of the table.

        Raises TABLE_STOPPED if too many events are refused, and NotLocalError for a batch that is
        left to Spark.
        """
        if (why := why_not_local(self.schema)) is not None:
            raise NotLocalError(why)
        with self.stages.timed(Stage.DECODE):
            events = arrow.log_events(rows)
            changes = self.decoder.decode(events)
        with self.stages.timed(Stage.REDUCE):
            return self._reduced(changes, [event.offset for event in events], upto)

    def _reduced(self, changes: list[Change], offsets: Sequence[int], upto: int) -> Outcome:
        facts = overview(changes)
        if facts.moves:
            changes = resolve(changes, self.lake, self.schema)
            facts = overview(changes)
        reasons = _refused(changes)
        if facts.last_truncate is not None:
            changes = [change for change in changes if change.offset > facts.last_truncate]
        upserts, deletes = self._rows(changes, facts, reasons)
        too_many_refused.stop_for_too_many(self.schema.table, offsets, reasons, self.policy)
        return Outcome(
            position=self._after(facts, len(reasons), upto),
            truncated=facts.last_truncate is not None,
            upserts=upserts,
            deletes=deletes,
            refused=pa.table(
                [sorted(reasons), [reasons[at] for at in sorted(reasons)]], schema=arrow.REFUSED
            ),
        )

    def _after(self, facts: Overview, refused: int, upto: int) -> Position:
        applied = facts.events - facts.refused - max(0, refused - facts.refused)
        counts = {n: getattr(self.position, n) + facts.by_operation[n] for n in BY_OPERATION}
        rows_applied = self.position.rows_applied + applied
        return replace(self.position, offset=upto, rows_applied=rows_applied, **counts)

    def _rows(
        self, changes: Sequence[Change], facts: Overview, reasons: Reasons
    ) -> tuple[pa.Table, pa.Table]:
        """Return rows to write and to delete; add the reasons of those that cannot be made."""
        is_empty = facts.last_truncate is not None or not self.position.rows_applied
        if self.schema.mode is TableMode.MULTISET:
            copies = self._copies(changes, NoRows() if is_empty else self.lake, reasons)
            return self._copy_table(copies, deleted=False), self._copy_table(copies, deleted=True)
        if self.schema.mode is TableMode.APPEND:
            new = [change for change in changes if change.applies]
            return self._table(new), self._table([], self.schema.key)
        latest = latest_per_key(changes, self.schema, carry=bool(facts.keeps))
        _add(reasons, [change for change in latest.values() if change.reason is not None])
        good = {key: change for key, change in latest.items() if change.reason is None}
        deletes = [] if is_empty else [change for change in good.values() if change.op == "d"]
        writes = {key: change for key, change in good.items() if change.op != "d"}
        whole = self._whole(writes, NoRows() if is_empty else self.lake, reasons)
        return self._table(whole), self._table(deletes, self.schema.key)

    def _whole(
        self, writes: Mapping[Key, Change], lake: LakeRows, reasons: Reasons
    ) -> list[Change]:
        """Take what the batch does not have from the rows in the lake; refuse what has none."""
        waiting = {key: change for key, change in writes.items() if change.keep}
        if not waiting:
            return list(writes.values())
        columns = sorted({number for change in waiting.values() for number in change.keep})
        old = lake.rows(waiting.keys(), columns)
        filled = {
            key: _filled(change, dict(zip(columns, old[key], strict=True)))
            for key, change in waiting.items()
            if key in old
        }
        lost = [change for key, change in waiting.items() if key not in old]
        _add(reasons, [replace(change, reason=NO_ROW_TO_KEEP_FROM) for change in lost])
        return [filled.get(key, c) for key, c in writes.items() if key in filled or not c.keep]

    def _copies(self, changes: Sequence[Change], lake: LakeRows, reasons: Reasons) -> list[CopyRow]:
        net = net_copies(changes, row_digest(self.schema))
        copies = copy_rows(net, lake.copies(net.keys()))
        _add(reasons, [copy for copy in copies if copy.reason is not None])
        return [copy for copy in copies if copy.reason is None]

    def _table(self, changes: Sequence[Change], names: Sequence[str] | None = None) -> pa.Table:
        offsets = pa.array([change.offset for change in changes], type=pa.int64())
        rows = [change.values for change in changes]
        return arrow.table_of(self.schema, rows, {OFFSET: offsets}, names)

    def _copy_table(self, copies: Sequence[CopyRow], *, deleted: bool) -> pa.Table:
        mine = [copy for copy in copies if copy.deleted is deleted]
        own = {
            OFFSET: pa.array([copy.offset for copy in mine], type=pa.int64()),
            ROW_HASH: pa.array([copy.digest for copy in mine], type=pa.string()),
            COPY: pa.array([copy.copy for copy in mine], type=pa.int64()),
        }
        rows = [copy.values for copy in mine]
        return arrow.table_of(self.schema, rows, own, () if deleted else None)


def _filled(change: Change, old: Mapping[int, Any]) -> Change:
    values = list(change.values)
    for number in change.keep:
        values[number] = old[number]
    return replace(change, values=values, keep=())


def _refused(changes: Sequence[Change]) -> Reasons:
    reasons: Reasons = {}
    _add(reasons, [change for change in changes if change.reason is not None])
    return reasons


def _add(reasons: Reasons, refused: Sequence[Change | CopyRow]) -> None:
    """Keep the first by alphabet of several reasons of one event, as Spark does."""
    for event in refused:
        assert event.reason is not None  # noqa: S101 - these are refused
        known = reasons.get(event.offset, event.reason)
        reasons[event.offset] = min(known, event.reason)
