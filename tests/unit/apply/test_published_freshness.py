"""How fresh the lake is counts for transactions of the application, and not for heartbeats."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc.apply.rounds.applied_tables import AppliedTables
from cdc.apply.rounds.last_cut import Topics, last_cut
from cdc.apply.rounds.publisher import Publisher
from cdc.apply.rounds.table_freezer import TableFreezer
from cdc.apply.rounds.whole_transactions import Cut
from cdc.events.transactions import END, Marker
from cdc.lake.records.base import nothing_applied
from cdc.lake.records.ledger import Ledger
from cdc.land.inbox import Inbox
from cdc.observe.recent_freshness import RecentFreshness
from cdc.observe.stage_times import StageTimes

HEARTBEAT = "p.wal2lake.heartbeat"


def end(lsn: int, age: float, **counts: int) -> Marker:
    """Return the END of a transaction that was committed so many seconds ago."""
    at = datetime.now(UTC) - timedelta(seconds=age)
    topics = {name.replace("__", "."): count for name, count in counts.items()}
    return Marker(txid=lsn, lsn=lsn, status=END, counts=topics, committed_at=at)


@pytest.fixture
def recent() -> RecentFreshness:
    return RecentFreshness(lambda: 0.0)


@pytest.fixture
def publisher(tmp_path: Path, recent: RecentFreshness) -> Publisher:
    topics = Topics(prefix="p", markers="p.markers", notes="p.notes")
    return Publisher(
        Ledger(str(tmp_path / "ledger")),
        last_cut(nothing_applied(1), topics, {}),
        topics=topics,
        tables=AppliedTables({}, notes_topic="p.notes", threads=1),
        inbox=Inbox(),
        freezer=TableFreezer({}),
        wal_end=lambda: 1,
        recent=recent,
        stages=StageTimes(),
    )


def publish(publisher: Publisher, *ends: Marker) -> None:
    lsn = ends[-1].lsn
    cut = Cut(lsn=lsn, committed_at=None, transactions=len(ends), offsets={})
    part = SimpleNamespace(ends=ends, end_offsets={one.lsn: one.lsn for one in ends})
    publisher.publish(cut, cast("Any", part), None)


def test_heartbeats_that_waited_do_not_count(publisher: Publisher, recent: RecentFreshness) -> None:
    publish(publisher, end(1, 14, **{HEARTBEAT: 1}), end(2, 9, **{HEARTBEAT: 1}))
    assert recent.reached().transactions == 0
    publish(publisher, end(3, 12, **{HEARTBEAT: 1}), end(4, 1, p__app__t=1))
    found = recent.reached()
    assert found.transactions == 1
    assert found.p99 < 12


def test_a_transaction_with_more_than_a_heartbeat_counts(
    publisher: Publisher, recent: RecentFreshness
) -> None:
    both = {HEARTBEAT: 1, "p.app.t": 1}
    publish(publisher, end(1, 1, **both), end(2, 1, **{HEARTBEAT: 2}), end(3, 1, p__app__t=1))
    assert recent.reached().transactions == 3
