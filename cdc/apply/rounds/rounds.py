"""Apply: from what has landed to the next cut, table by table, and its row in the ledger.

One round reads the slice of the log after the last cut, finds the longest prefix of complete
transactions in it, merges every table up to there and publishes the cut. A round that is
interrupted anywhere is repeated from the same slice: a table that is at the cut already has
its position in its own commit and is left alone.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.replay import Schemas
from cdc.apply.rounds import log_slice
from cdc.apply.rounds.cut import Cut, find_cut
from cdc.apply.rounds.first_snapshot import FirstSnapshot
from cdc.apply.rounds.freezer import Freezer
from cdc.apply.rounds.log_slice import Slice
from cdc.apply.rounds.stuck_transaction import Unfilled
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.spark_plans import suit
from cdc.apply.table.structure_notes import PlacedNote, placed_notes
from cdc.failpoints import Failpoint, reach
from cdc.lake.records.base import base_of
from cdc.lake.records.epochs import Epoch
from cdc.lake.records.ledger import Ledger
from cdc.land import landing as landed_values
from cdc.land.inbox import Inbox
from cdc.land.landing import Landing
from cdc.state.holds import Holds
from cdc.state.requests import Request

logger = structlog.get_logger(__name__)


class Applier:
    """Runs rounds; owns the tables, the ledger and the base of the next cut."""

    def __init__(
        self,
        spark: SparkSession,
        tables: Mapping[str, AppliedTable],  # by topic
        *,
        prefix: str,
        marker_topic: str,
        notes_topic: str,
        log_path: str,
        ledger: Ledger,
        schemas: Schemas,
        requests_dir: Path,
        threads: int,
        epoch: Epoch | None,
        first: FirstSnapshot,
        budget: int,
        topic_ids: Mapping[str, str],
        patience_seconds: float,
    ) -> None:
        self._spark = spark.newSession()  # set for each round: `effort`
        self.tables = tables
        self._prefix = prefix
        self._marker_topic = marker_topic
        self.notes_topic = notes_topic
        self._log_path = log_path
        self._ledger = ledger
        self.schemas = schemas
        self._holds = Holds(requests_dir)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="apply")
        self.first = first
        self.budget = budget
        self._topic_ids = topic_ids
        self._unfilled = Unfilled(patience_seconds, time.monotonic)
        self._without: Cut | None = None
        self.before_cut: Callable[[int], None] = _unchecked
        """Called with an LSN that a cut is to reach, before any table is brought there."""
        self.position: Callable[[], int | None] = _nowhere
        """Where the source's WAL ends, or None where it cannot be asked now."""
        self.alarm = ""
        """What keeps cuts from being published and does not go away by itself."""
        self.turns = 0
        """Rounds that published, or left nothing that could have been: another one is a move."""
        self.merging: set[str] = set()
        """Tables that are being brought to the next cut."""
        self._served: set[str] = set()
        self._noted: set[str] = set()
        self.freezer = Freezer(tables)
        self.inbox = Inbox()
        self.base = base_of(ledger.last(), epoch)
        self.first.applied = self.base.lsn is not None
        self.offsets = self._base_offsets()

    def take_noted(self) -> list[str]:
        """Topics of stopped tables whose structure was noted again since this was asked last."""
        found = sorted(self._noted)
        self._noted.clear()
        return found

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def round(self) -> bool:
        """Move to the next cut, or learn what it waits for; False when there is nothing to do."""
        landed = self._landed()
        # Asked for after the landings were listed: a commit that landed before a request was
        # written lies before the snapshot the request is about (cdc/client/moment.py).
        asked = self._asked()
        if any(request.bound is None for request in asked):
            return False
        budget = self.budget
        left = landed_values.beyond(landed, self.first.open(self.offsets))
        held, self._without = len(self.first.held), None
        while left:
            taken = landed_values.take(left, budget)
            if self._advance(taken, asked) or len(self.first.held) != held:
                self.turns += 1
                return True
            if len(taken) == len(left):
                break
            budget *= 2  # a transaction may be larger than the budget
        self._watch(self._without)
        if not asked and (self._without is None or self._without.incomplete is None):
            self.turns += 1
        return False

    def _watch(self, cut: Cut | None) -> None:
        """Say once that a transaction is not filled, and once that it is."""
        alarm = self._unfilled.look(cut)
        if alarm != self.alarm:
            self.alarm = alarm
            if alarm:
                logger.error("alarm", reason=alarm)
            else:
                logger.info("alarm ended")

    def _base_offsets(self) -> dict[str, int]:
        """Where the last cut ends, by topic."""
        found = {
            self._marker_topic: self.base.marker_offset,
            self.notes_topic: self.base.notes_offset,
        }
        for topic, table in self.tables.items():
            entry = self.base.entry(str(table.schema.table))
            found[topic] = entry.offset if entry else table.position.offset
        return found

    def _asked(self) -> list[Request]:
        found = self._holds.pending(time.time())
        self._served &= {request.id for request in found}
        base = self.base.lsn or 0
        # A bound before the last cut can be met no more; who asked sees that cut in the ledger.
        return [
            request
            for request in found
            if request.id not in self._served and (request.bound is None or request.bound >= base)
        ]

    def _advance(self, taken: Sequence[Landing], asked: Sequence[Request]) -> bool:
        schemas = self.schemas(_all_ids(taken))
        suit(self._spark, sum(landing.count for landing in taken))
        rows = log_slice.read(self._spark, self._log_path, taken, self.offsets).persist()
        try:
            part = log_slice.look(
                rows,
                schemas,
                last=self._last(taken),
                marker_topic=self._marker_topic,
                prefix=self._prefix,
            )
            part = self.first.held_back(part, self._has)
            cut, bound = self._cut(part, asked)
            if not self.first.applied and self._is_passed(cut):
                return False  # a crash kept a cut of more rows from being published
            served = _served(asked, part, cut, bound, base=self.base.lsn or 0)
            if not served and not self._moves(cut):
                self._without = cut
                return False
            self._watch(None)
            self.before_cut(cut.lsn or self.base.lsn or 0)
            self._end_of_snapshot(cut)
            self._apply(part, cut, schemas, landed_values.schema_ids(taken))
            self._publish(cut, part, served)
        finally:
            rows.unpersist()
        return True

    def _landed(self) -> list[Landing]:
        """What has landed and is not wholly in a cut."""
        by = self.first.landed_by(lambda: self.inbox.waiting()[-1].number)
        landed = self.inbox.waiting()  # after it: with all up to there
        self.first.look(by, landed_values.beyond(landed, self.first.open(self.offsets)))
        return landed

    def _has(self, topic: str, offset: int) -> bool:
        table = self.tables.get(topic)
        return table is not None and table.following and table.position.offset >= offset

    def _cut(self, part: Slice, asked: Sequence[Request]) -> tuple[Cut, int | None]:
        """The cut, and the bound it was stopped at.

        A table that is beyond the bounded cut was moved there by a round that a crash kept
        from publishing: that cut has to come first, so the bound is left for the next one.
        """
        bound = min((request.bound for request in asked if request.bound), default=None)
        cut = _find(part, bound)
        return (_find(part, None), None) if self._is_passed(cut) else (cut, bound)

    def _is_passed(self, cut: Cut) -> bool:
        return any(
            table.following and table.position.offset > self._end(topic, cut)
            for topic, table in self.tables.items()
        )

    def _end(self, topic: str, cut: Cut) -> int:
        return max(cut.offsets.get(topic, -1), self.offsets.get(topic, -1))

    def _last(self, taken: Sequence[Landing]) -> dict[str, int]:
        """The last landed offset of every table's topic, also of those not in these landings."""
        landed = landed_values.last_offsets(taken)
        awaited = (*self.tables, self.notes_topic)
        return {topic: max(self.offsets[topic], landed.get(topic, -1)) for topic in awaited}

    def _moves(self, cut: Cut) -> bool:
        return cut.lsn is not None or any(
            offset > self.offsets.get(topic, -1) for topic, offset in cut.offsets.items()
        )

    def _apply(
        self,
        part: Slice,
        cut: Cut,
        schemas: Mapping[int, str],
        ids: Mapping[str, frozenset[int]],
    ) -> None:
        started = time.monotonic()
        for topic, lsns in part.snapshots.items():
            table = self.tables.get(topic)  # the notes are read by the snapshot too
            if table is not None and table.following and table.position.offset < cut.offsets[topic]:
                table.read_at(lsns)
        notes = self._notes(part, cut, schemas)
        for table in self.tables.values():
            table.snapshot_end = self.base.snapshot_end
        self._noted |= {
            topic
            for topic, table in self.tables.items()
            if table.stopped and not table.frozen and table.pending(notes)
        }
        futures = [
            self._pool.submit(
                self._bring,
                table,
                part.rows.where(F.col("offset") <= cut.offsets[topic]),
                topic=topic,
                upto=cut.offsets[topic],
                schemas={i: schemas[i] for i in ids.get(topic, ()) if i in schemas},
                notes=notes,
                beyond=part.last[topic] > cut.offsets[topic],
            )
            for topic, table in self.tables.items()
            if table.following
            and (cut.offsets[topic] > table.position.offset or table.pending(notes))
        ]
        for future in futures:
            future.result()
        logger.info("applied", tables=len(futures), seconds=round(time.monotonic() - started, 2))

    def _bring(self, table: AppliedTable, rows: DataFrame, **what: Any) -> None:  # noqa: ANN401
        """What ``_apply`` says, told to who asks meanwhile."""
        name = str(table.schema.table)
        self.merging.add(name)
        try:
            _apply(table, rows, **what)
        finally:
            self.merging.discard(name)

    def _notes(self, part: Slice, cut: Cut, schemas: Mapping[int, str]) -> list[PlacedNote]:
        """Changes of structures inside the cut; asked for only when there may be some."""
        upto, after = cut.offsets[self.notes_topic], self.offsets[self.notes_topic]
        if upto <= after:
            return []
        mine = part.rows.where(
            (F.col("topic") == self.notes_topic) & F.col("offset").between(after + 1, upto)
        )
        return placed_notes(mine, schemas)

    def _end_of_snapshot(self, cut: Cut) -> None:
        """Remember, once, a place behind all that the first snapshot has read.

        It is over when something of the stream is in a cut.
        """
        if self.base.snapshot_end is None and (cut.lsn is not None or self.base.lsn is not None):
            self.base = replace(self.base, snapshot_end=self.position())

    def _publish(self, cut: Cut, part: Slice, served: Request | None) -> None:
        offsets = {topic: self._end(topic, cut) for topic in self.offsets}
        if cut.lsn is not None:
            offsets[self._marker_topic] = part.end_offsets[cut.lsn]
        lsn = self.base.lsn if cut.lsn is None else cut.lsn
        streaming = lsn is not None
        end = self.base.snapshot_end
        # What it found nothing of may have been emptied or rewritten while it read: that shows to
        # no older snapshot, and the stream makes it good.
        whole = lsn is not None and end is not None and lsn >= end
        landed = self.inbox.waiting()
        floor = landed_values.floor(landed, offsets, self.base.landing_floor)
        row = replace(
            self.base,
            cut=self.base.cut + 1,
            lsn=lsn,
            committed_at=cut.committed_at or self.base.committed_at,
            published_at=datetime.now(UTC),
            transactions=cut.transactions,
            request=served.id if served else None,
            covers_lsn=served.bound if served else None,
            marker_offset=offsets[self._marker_topic],
            notes_offset=offsets[self.notes_topic],
            landing_floor=floor,
            tables=tuple(
                table.entry(offsets[topic], streaming=streaming and (whole or table.was_read))
                for topic, table in sorted(self.tables.items())
            ),
            topic_ids={topic: self._topic_ids.get(topic, "") for topic in offsets},
        )
        reach(Failpoint.BEFORE_LEDGER_APPEND)
        self._ledger.append(row)
        reach(Failpoint.AFTER_LEDGER_APPEND)
        self.base, self.offsets = row, offsets
        self.inbox.drop(floor)
        if served:
            self._served.add(served.id)
        self.freezer.published(served.id if served else None)
        logger.info("published", cut=row.cut, lsn=row.lsn, transactions=row.transactions)


def _apply(
    table: AppliedTable,
    rows: DataFrame,
    *,
    topic: str,
    upto: int,
    schemas: Mapping[int, str],
    notes: Sequence[PlacedNote],
    beyond: bool,
) -> None:
    mine = table.bound(notes, rows.where(F.col("topic") == topic), schemas)
    table.apply(rows, topic=topic, upto=upto, schemas=schemas, notes=mine, beyond=beyond)


def _unchecked(_lsn: int) -> None:
    """Where nobody looks at the source."""


def _nowhere() -> int:
    """Where there is no source: what was read is all that there was."""
    return 0


def _find(part: Slice, bound: int | None) -> Cut:
    """The cut; a topic whose transactions cannot all be told is not waited for.

    Its undecodable events go to quarantine, and the table is marked for it.
    """
    return find_cut(part.ends, part.spans, part.last, bound=bound, ignored=part.undecodable)


def _served(
    asked: Sequence[Request], part: Slice, cut: Cut, bound: int | None, *, base: int
) -> Request | None:
    """The request whose cut this is: every commit up to its bound is inside.

    That is known once a commit beyond the bound has landed, since END markers are in commit
    order. A bound before the last cut (``base``) comes too late to be met.
    """
    if bound is None or bound < base or not any(end.lsn > bound for end in part.ends):
        return None
    inside = [end.lsn for end in part.ends if end.lsn <= bound]
    if inside and cut.lsn != max(inside):
        return None  # a transaction up to the bound is not complete yet
    return next(request for request in asked if request.bound == bound)


def _all_ids(taken: Sequence[Landing]) -> set[int]:
    return set().union(*landed_values.schema_ids(taken).values())
