"""Publishes a cut: from its row in the ledger on, readers see it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import structlog

from cdc.apply.rounds.applied_tables import AppliedTables
from cdc.apply.rounds.last_cut import LastCut, Topics
from cdc.apply.rounds.log_slice import Slice
from cdc.apply.rounds.table_freezer import TableFreezer
from cdc.apply.rounds.whole_transactions import Cut
from cdc.events.transactions import is_heartbeat
from cdc.failpoints import Failpoint, reach
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.land import landing as landed_values
from cdc.land.inbox import Inbox
from cdc.observe.recent_freshness import RecentFreshness
from cdc.observe.stage_times import Stage, StageTimes
from cdc.state.requests import Request

Derive = Callable[[LedgerRow, Slice, Mapping[str, int]], tuple[DerivedEntry, ...]]
logger = structlog.get_logger(__name__)


class Publisher:
    """Owns the last cut. Any thread may read ``last``; only the thread of the rounds publishes."""

    def __init__(
        self,
        ledger: Ledger,
        last: LastCut,
        *,
        topics: Topics,
        tables: AppliedTables,
        inbox: Inbox,
        freezer: TableFreezer,
        wal_end: Callable[[], int | None],
        recent: RecentFreshness,
        stages: StageTimes,
        derive: Derive = lambda *_: (),
    ) -> None:
        """``wal_end`` returns where the source's WAL ends; None where the source cannot say now.

        ``derive`` brings the derived tables to the cut of a row, and returns their entries. It gets
        the events beyond the last cut, and where that ended in each topic.
        """
        self._ledger = ledger
        self.last = last
        self._topics = topics
        self._tables = tables
        self._inbox = inbox
        self._freezer = freezer
        self._wal_end = wal_end
        self._recent, self._stages = recent, stages
        self._derive = derive

    def mark_snapshot_end(self, cut: Cut) -> None:
        """Record, once, an LSN behind everything that the first snapshot has read.

        The snapshot is over when a transaction of the stream is in a cut.
        """
        row = self.last.row
        if row.snapshot_end is None and (cut.lsn is not None or row.lsn is not None):
            self.last = replace(self.last, row=replace(row, snapshot_end=self._wal_end()))

    def publish(self, cut: Cut, part: Slice, served: Request | None) -> None:
        """Append the cut's row to the ledger; every table has to be at the cut already.

        ``served`` is the request that asked for this cut, where one did.
        """
        with self._stages.timed(Stage.PUBLISH):
            row, offsets = self._row(cut, part, served)
            derived = self._derive(row, part, self.last.offsets)
            row = replace(row, derived=derived, published_at=datetime.now(UTC))
            reach(Failpoint.BEFORE_LEDGER_APPEND)
            self._ledger.append(row)
            reach(Failpoint.AFTER_LEDGER_APPEND)
        self._note_freshness(cut, part, row)
        self.last = LastCut(row=row, offsets=offsets)
        self._inbox.drop(row.landing_floor)
        self._freezer.freeze_waiting(served.id if served else None)
        logger.info("published", cut=row.cut, lsn=row.lsn, transactions=row.transactions)

    def _note_freshness(self, cut: Cut, part: Slice, row: LedgerRow) -> None:
        """Take in how long the transactions of the cut took to become readable.

        Heartbeats do not count, as they may wait for each other (cdc/kafka/quiet_stream.py).
        """
        prefix = self._topics.prefix
        inside = [end for end in part.ends if cut.lsn is not None and end.lsn <= cut.lsn]
        ends = [end for end in inside if not is_heartbeat(end, prefix)]
        commits = [end.committed_at for end in ends if end.committed_at is not None]
        self._recent.published(commits, row.published_at)

    def _row(
        self, cut: Cut, part: Slice, served: Request | None
    ) -> tuple[LedgerRow, dict[str, int]]:
        last, before = self.last, self.last.row
        offsets = {t: max(cut.offsets.get(t, -1), end) for t, end in last.offsets.items()}
        if cut.lsn is not None:
            offsets[self._topics.markers] = part.end_offsets[cut.lsn]
        lsn = before.lsn if cut.lsn is None else cut.lsn
        row = replace(
            before,
            cut=before.cut + 1,
            lsn=lsn,
            committed_at=cut.committed_at or before.committed_at,
            published_at=datetime.now(UTC),
            transactions=cut.transactions,
            request=served.id if served else None,
            covers_lsn=served.bound if served else None,
            marker_offset=offsets[self._topics.markers],
            notes_offset=offsets[self._topics.notes],
            landing_floor=landed_values.floor(self._inbox.waiting(), offsets, before.landing_floor),
            tables=self._tables.entries(
                offsets, streaming=lsn is not None, whole=_is_behind(lsn, before.snapshot_end)
            ),
            topic_ids={topic: self._topics.ids.get(topic, "") for topic in offsets},
        )
        return row, offsets


def _is_behind(lsn: int | None, snapshot_end: int | None) -> bool:
    """Return whether a cut lies behind the end of the first snapshot.

    A table that the snapshot found empty may have been truncated or rewritten while it was read:
    an older snapshot then sees none of its rows. Up to the snapshot's end the stream corrects that.
    """
    return lsn is not None and snapshot_end is not None and lsn >= snapshot_end
