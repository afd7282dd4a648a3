"""Kill the commit of a copied table at each of its steps, and take the table again later."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from deltalake import DeltaTable

from cdc.config import Config, Lake, Source
from cdc.failpoints import Failpoint
from cdc.lake.commit.row_files import RowFiles
from cdc.lake.files.store_of import store_of
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Reading, Readings
from cdc.lake.table.positions import UNREAD, Position, position
from cdc.operations.first_snapshot.copied_table import CopiedRange
from cdc.operations.first_snapshot.taking import Taking, committer_of
from cdc.operations.resnapshot import kept_reading
from cdc.operations.resnapshot.refused_row import RefusedRow
from cdc.tables import TableId, TableMode, TableState
from tests.unit.killing import Killed, arm
from tests.unit.lake.commit.small_table import ids, make, rows

TABLE: Final = TableId("a", "t")
STEPS: Final = (
    Failpoint.BEFORE_COPY_WRITE,
    Failpoint.AFTER_COPY_WRITE,
    Failpoint.BEFORE_COPY_KEEP,
    Failpoint.AFTER_COPY_KEEP,
    Failpoint.BEFORE_READING_RECORD,
    Failpoint.AFTER_READING_RECORD,
    Failpoint.BEFORE_ENTRY_PUT,
    Failpoint.AFTER_ENTRY_PUT,
)


class Job:
    """What a taking needs of a job, with one table that has no rows yet."""

    def __init__(self, folder: Path) -> None:
        self.live_path = folder / "a" / "t"
        make(self.live_path)
        config = Config(source=Source(tables=["a.*"]), lake=Lake(path=str(folder)))
        self.context: Any = SimpleNamespace(
            config=config,
            log=SimpleNamespace(epoch=None),
            readings=Readings(str(folder / "readings")),
            quarantine=Quarantine(str(folder / "quarantine")),
            topic=str,
        )

    def take(self, offset: int, found: range) -> None:
        """Read the table at a moment whose cut ends at the offset, and take it."""
        subject, number = self._subject(offset), self.context.readings.next_number()
        subject.number = number
        committer = committer_of(subject, pages=1)
        assert committer is not None
        with RowFiles(store_of(str(self.live_path)), committer.open().metadata) as files:
            files.add(rows(committer, found, offset=offset))
        Taking(
            context=self.context,
            session=SimpleNamespace(),  # type: ignore[arg-type] # nothing asks Spark
            subject=subject,
            committer=committer,
            notes=(),
            operation="operation",
        ).take([CopiedRange(files.files, len(found) + 1, [RefusedRow('{"id": "-1"}', "why")])])

    def _subject(self, offset: int) -> Any:  # noqa: ANN401 - a stand-in
        entry = TableEntry(
            table=str(TABLE), path=str(self.live_path), version=0, offset=offset,
            state=TableState.SNAPSHOTTING.value,
        )  # fmt: skip
        cut = LedgerRow(
            cut=offset, epoch=1, lsn=offset, committed_at=None, published_at=datetime.now(UTC),
            transactions=1, tables=(entry,),
        )  # fmt: skip
        live = SimpleNamespace(
            path=str(self.live_path),
            schema=SimpleNamespace(table=TABLE),
            position=Position(epoch=1, offset=-1, reading=UNREAD),
            replace_content=lambda _: None,
        )
        structure = SimpleNamespace(oid=1, table=TABLE)
        schema = SimpleNamespace(table=TABLE, mode=TableMode.KEYED)
        target = SimpleNamespace(structure=structure, schema=schema, same=True)
        return SimpleNamespace(
            live=live, target=target, at=SimpleNamespace(cut=cut, lsn=offset), number=0
        )

    def kept(self) -> Reading:
        """Return the reading from which a replay of the table would begin."""
        newest: Reading = max(self.context.readings.rows(), key=lambda one: one.number)
        return newest


@pytest.fixture
def armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of the failpoints, whose kill raises ``Killed`` instead."""

    def remove(_: object, path: str) -> None:
        shutil.rmtree(path, ignore_errors=True)

    monkeypatch.setattr(kept_reading, "remove", remove)
    return arm(tmp_path, monkeypatch)


@pytest.mark.parametrize("point", STEPS)
def test_a_table_has_the_rows_of_one_moment_whenever_the_job_dies(
    tmp_path: Path, armed: Path, point: Failpoint
) -> None:
    job = Job(tmp_path / "lake")
    (armed / point).write_text("1")

    with pytest.raises(Killed):
        job.take(10, range(5))
    is_taken = position(str(job.live_path)) != Position(epoch=1, offset=0)
    if not is_taken:
        assert ids(job.live_path) == []
        job.take(20, range(3, 9))

    assert is_taken == (point is Failpoint.AFTER_ENTRY_PUT)
    wanted = range(5) if is_taken else range(3, 9)
    assert ids(job.live_path) == list(wanted)
    found, kept = position(str(job.live_path)), job.kept()
    assert found is not None
    assert (found.offset, found.rows_applied) == ((10, 6) if is_taken else (20, 7))
    assert found == kept.position
    assert found.reading == kept.number
    assert found.refused == 1
    assert ids(Path(kept.path)) == list(wanted)
    newest = job.context.quarantine.rows(str(TABLE), only_open=True, with_values=False)
    assert found.refused <= len(newest)


def test_a_reading_outlives_what_the_table_does_with_its_files(tmp_path: Path, armed: Path) -> None:
    assert not list(armed.iterdir())
    job = Job(tmp_path / "lake")
    job.take(10, range(5))

    table = DeltaTable(str(job.live_path))
    for file in table.file_uris():
        Path(file.removeprefix("file://")).unlink()

    assert ids(Path(job.kept().path)) == list(range(5))
