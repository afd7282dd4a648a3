"""What a cut costs does not grow with the tables that nothing was written to."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc.apply.rounds.applied_tables import AppliedTables
from cdc.apply.rounds.last_cut import LastCut, Topics, last_cut
from cdc.apply.rounds.publisher import Publisher
from cdc.apply.rounds.table_freezer import TableFreezer
from cdc.apply.rounds.whole_transactions import Cut
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.table_content import TableContent
from cdc.config import Job
from cdc.events.schema import Column, TableSchema
from cdc.lake.create.first_entry import create_table
from cdc.lake.own_session import OwnSession
from cdc.lake.records.base import nothing_applied
from cdc.lake.records.ledger import Ledger
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table import foreign_commits
from cdc.lake.table.entry_file import LOG, entry_name
from cdc.lake.table.positions import Position, open_table
from cdc.land.inbox import Inbox
from cdc.observe.recent_freshness import RecentFreshness
from cdc.observe.stage_times import StageTimes
from cdc.tables import TableId, TableMode

AT = Position(epoch=1, offset=-1)
FIELDS = [{"name": "id", "type": "integer", "nullable": True, "metadata": {}}]
FEW, MANY = 30, 300


@dataclass
class Work:
    """What a cut has done."""

    opened: list[str] = field(default_factory=list)  # tables whose log was opened
    read: list[str] = field(default_factory=list)  # log entries
    metadata: int = 0  # characters that the ledger's commit says of the cut


class Lake:
    """Tables at a published cut; none of them ever needs Spark."""

    def __init__(self, root: Path, tables: int) -> None:
        self.root = root
        self.ledger = Ledger(str(root / "ledger"))
        self.spark = cast("Any", SimpleNamespace())
        self.sessions = [OwnSession(self.spark) for _ in range(tables)]
        context = ApplyContext(
            quarantine=Quarantine(str(root / "quarantine")), placeholder="-", policy=Job()
        )
        by_topic = {
            f"p.app.t{number}": self.table(number, session, context)
            for number, session in enumerate(self.sessions)
        }
        self.tables = AppliedTables(by_topic, notes_topic="p.notes", threads=1)
        topics = Topics(prefix="p", markers="p.markers", notes="p.notes")
        self.publisher = Publisher(
            self.ledger,
            last_cut(nothing_applied(1), topics, by_topic),
            topics=topics,
            tables=self.tables,
            inbox=Inbox(),
            freezer=TableFreezer(by_topic),
            wal_end=lambda: 1,
            recent=RecentFreshness(lambda: 0.0),
            stages=StageTimes(),
        )
        self.publish(100)

    def table(self, number: int, session: OwnSession, context: ApplyContext) -> AppliedTable:
        path = str(self.root / f"t{number}")
        create_table(path, FIELDS, {}, AT.metadata())
        schema = TableSchema(
            table=TableId("app", f"t{number}"),
            columns=(Column("id", "int"),),
            key=("id",),
            mode=TableMode.KEYED,
        )
        return AppliedTable(session, path, TableContent(schema=schema, position=AT), context)

    def write(self, number: int) -> None:
        """Commit to one table, as a batch of its events does."""
        table = self.tables.by_topic[f"p.app.t{number}"]
        table.move(replace(AT, offset=5))
        info = {"commitInfo": {"operation": "MERGE", "userMetadata": table.position.metadata()}}
        (Path(table.path) / entry_name(1)).write_text(json.dumps(info))

    def publish(self, lsn: int) -> LastCut:
        offsets = {topic: table.position.offset for topic, table in self.tables.by_topic.items()}
        cut = Cut(lsn=lsn, committed_at=datetime.now(UTC), transactions=1, offsets=offsets)
        self.publisher.publish(
            cut, cast("Any", SimpleNamespace(ends=[], end_offsets={lsn: 1})), None
        )
        return self.publisher.last


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    """Return what is done from now on."""
    done, read_bytes = Work(), Path.read_bytes

    def opened(path: str) -> Any:  # noqa: ANN401 - a Delta table
        done.opened.append(path)
        return open_table(path)

    def read(path: Path) -> bytes:
        content = read_bytes(path)
        if path.parent.name == LOG:
            done.read.append(str(path))
        return content

    monkeypatch.setattr(foreign_commits, "open_table", opened)
    monkeypatch.setattr(Path, "read_bytes", read)
    yield done
    monkeypatch.undo()


def cut_of_one(lake: Lake, work: Work) -> Work:
    """Publish a cut with a change of one table."""
    work.opened.clear()
    work.read.clear()
    lake.write(7)
    last = lake.publish(200)
    entry = last.row.entry("app.t7")
    assert entry is not None
    assert (entry.version, entry.offset) == (1, 5)
    newest = max((lake.root / "ledger" / LOG).glob("*.json"))
    infos = [json.loads(line) for line in newest.read_text().splitlines() if "commitInfo" in line]
    work.metadata = sum(len(json.dumps(info)) for info in infos)
    return work


def test_a_cut_opens_no_log_and_reads_the_entries_of_what_was_written(
    tmp_path: Path, work: Work
) -> None:
    lake = Lake(tmp_path, MANY)
    assert len(work.opened) == MANY  # once, at the first cut
    done = cut_of_one(lake, work)
    entries = [path for path in done.read if "/ledger/" not in path]
    assert done.opened == []
    assert entries == [str(tmp_path / "t7" / entry_name(1))]
    assert not any(session.is_made for session in lake.sessions)


def test_a_cut_of_many_tables_says_no_more_in_its_metadata(tmp_path: Path, work: Work) -> None:
    sizes = []
    for tables in (FEW, MANY):
        lake = Lake(tmp_path / str(tables), tables)
        sizes.append(cut_of_one(lake, work).metadata)
    few, many = sizes
    assert abs(many - few) < 100, sizes  # numbers may have other lengths
