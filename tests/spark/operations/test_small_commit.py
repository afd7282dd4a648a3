"""A small reading becomes one commit, also if it is killed at a step; a rebuild merges it."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc.apply.difference.merge import merge_difference
from cdc.apply.difference.row_difference import KIND
from cdc.apply.local.not_local import NotLocalError
from cdc.config import Config, Lake, Source
from cdc.events.schema import Column, TableSchema
from cdc.failpoints import Failpoint
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Readings
from cdc.lake.table import store
from cdc.lake.table.positions import Position, position
from cdc.operations.resnapshot.refused_row import RefusedRow
from cdc.operations.resnapshot.small_commit import SmallWriter
from cdc.operations.resnapshot.small_reading import SmallReading
from cdc.state.operation import TableResult
from cdc.tables import TableId, TableMode, TableState
from tests.unit.killing import Killed, arm
from tests.unit.lake.commit.small_table import add, at, make, seen

TABLE: Final = TableId("a", "t")
BEFORE: Final = range(10)
STEPS: Final = (
    Failpoint.BEFORE_DIFFERENCE_WRITE,
    Failpoint.AFTER_DIFFERENCE_WRITE,
    Failpoint.BEFORE_READING_RECORD,
    Failpoint.AFTER_READING_RECORD,
    Failpoint.BEFORE_COMMIT_NOTE,
    Failpoint.AFTER_COMMIT_NOTE,
    Failpoint.BEFORE_DIFFERENCE_MERGE,
    Failpoint.AFTER_ROWS_WRITE,
    Failpoint.AFTER_VECTORS_WRITE,
    Failpoint.BEFORE_ENTRY_PUT,
    Failpoint.AFTER_ENTRY_PUT,
    Failpoint.AFTER_DIFFERENCE_MERGE,
)
COMMITTED: Final = {Failpoint.AFTER_ENTRY_PUT, Failpoint.AFTER_DIFFERENCE_MERGE}


class Job:
    """What a writer needs of a job, with one table that has the rows ``BEFORE``."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.spark, self.path, self.stopped = spark, folder / "a" / "t", False
        committer = make(self.path)
        file = add(committer, [-1, *BEFORE])
        table = committer.open()
        committer.commit(arrow_schema(table.metadata).empty_table(), {file: [0]}, at(1))
        config = Config(source=Source(tables=["a.*"]), lake=Lake(path=str(folder)))
        self.context: Any = SimpleNamespace(
            config=config,
            log=SimpleNamespace(epoch=None, newest=lambda: SimpleNamespace(notes=lambda _: ())),
            readings=Readings(str(folder / "readings")),
            quarantine=Quarantine(str(folder / "quarantine")),
            topic=str,
        )

    def take(self, offset: int, reading: SmallReading, *, text: str = "") -> TableResult:
        """Take a reading at a cut with this offset; ``text`` is a column that the table lacks."""
        operation: Any = SimpleNamespace(id="operation", options={}, asked_by="someone")
        reporter: Any = SimpleNamespace(
            tell=lambda **_: None, refuse_ended=lambda: None, write_fields=lambda **_: None
        )
        subject = self._subject(offset, text)
        return SmallWriter(self.context, self.spark, subject, operation, reporter).in_place(reading)

    def _subject(self, offset: int, text: str) -> Any:  # noqa: ANN401 - a stand-in
        entry = TableEntry(
            table=str(TABLE), path=str(self.path), version=0, offset=offset,
            state=TableState.RESNAPSHOTTING.value,
        )  # fmt: skip
        cut = LedgerRow(
            cut=offset, epoch=1, lsn=offset, committed_at=None, published_at=datetime.now(UTC),
            transactions=1, tables=(entry,), notes_offset=0,
        )  # fmt: skip
        live = SimpleNamespace(
            path=str(self.path), schema=schema(), stopped=self.stopped,
            position=Position(epoch=1, offset=1), replace_content=lambda _: None,
        )  # fmt: skip
        target = SimpleNamespace(structure=None, schema=schema(text), same=not text)
        number = self.context.readings.next_number()
        moment = SimpleNamespace(cut=cut, lsn=offset)
        return SimpleNamespace(live=live, target=target, at=moment, number=number)


def schema(*texts: str) -> TableSchema:
    columns = [Column("id", "int"), *(Column(name, "string") for name in ("name", *texts) if name)]
    return TableSchema(table=TABLE, columns=tuple(columns), key=("id",), mode=TableMode.KEYED)


def reading(ids: range, *more: str) -> SmallReading:
    """Return a reading of these rows; the one with the id 5 differs from that of the lake."""
    columns = {"id": pa.array(ids, pa.int32())}
    names = ["another" if number == 5 else f"n{number}" for number in ids]
    columns |= {name: pa.array(names) for name in ("name", *more)}
    refused = [RefusedRow('{"id": "-1"}', "why")]
    return SmallReading(rows=pa.table(columns), refused=refused, rows_read=len(ids) + 1)


def named(ids: range) -> list[tuple[int, str]]:
    return [(number, "another" if number == 5 else f"n{number}") for number in ids]


def held(path: Path) -> list[tuple[int, str]]:
    return [(row["id"], row["name"]) for row in seen(path)]


def files(path: Path) -> set[Path]:
    return set(path.rglob("*"))


@pytest.fixture
def armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of the failpoints, whose kill raises ``Killed`` instead."""
    return arm(tmp_path, monkeypatch)


@pytest.mark.parametrize("point", STEPS)
def test_a_table_has_the_old_rows_or_the_new_ones_whenever_the_job_dies(
    tmp_path: Path, spark: SparkSession, armed: Path, point: Failpoint
) -> None:
    job = Job(tmp_path / "lake", spark)
    (armed / point).write_text("1")

    with pytest.raises(Killed):
        job.take(10, reading(range(5, 14)))

    assert held(job.path) == (
        named(range(5, 14)) if point in COMMITTED else [(number, f"n{number}") for number in BEFORE]
    )
    if point not in COMMITTED:
        job.take(20, reading(range(3, 9)))
        assert held(job.path) == named(range(3, 9))
    found, newest = position(str(job.path)), job.context.readings.rows()[-1]
    assert found is not None
    assert found == newest.position
    assert (found.offset, found.reading) == (10 if point in COMMITTED else 20, newest.number)


def test_a_rebuild_merges_what_is_kept_of_the_reading(tmp_path: Path, spark: SparkSession) -> None:
    job = Job(tmp_path / "lake", spark)
    before = tmp_path / "before"
    shutil.copytree(job.path, before)

    done = job.take(10, reading(range(5, 14)))

    (kept,) = job.context.readings.rows()
    assert not kept.whole
    rows = store.read(spark, kept.path, kept.version).drop(KIND)
    merge_difference(spark, str(before), schema(), rows, kept.position)
    assert held(before) == held(job.path) == named(range(5, 14))
    assert (done.added, done.changed, done.swept, done.refused) == (4, 1, 5, 1)


def test_of_a_table_that_was_stopped_the_whole_reading_is_kept(
    tmp_path: Path, spark: SparkSession
) -> None:
    job = Job(tmp_path / "lake", spark)
    job.stopped = True

    job.take(10, reading(range(5, 14)))

    (kept,) = job.context.readings.rows()
    assert kept.whole
    assert held(Path(kept.path)) == held(job.path) == named(range(5, 14))
    assert kept.position.rows_applied == 10


def test_a_reading_of_some_keys_leaves_all_other_rows(tmp_path: Path, spark: SparkSession) -> None:
    job = Job(tmp_path, spark)
    some = replace(reading(range(5, 7)), keys=frozenset({(5,), (6,), (7,)}))

    result = job.take(100, some)

    assert (result.changed, result.swept, result.rows_read) == (1, 1, 3)
    assert held(job.path) == [*named(range(7)), *named(range(8, 10))]
    [line] = job.context.readings.of(str(TABLE))
    assert not line.whole


def test_a_table_with_other_columns_is_replaced(tmp_path: Path, spark: SparkSession) -> None:
    job = Job(tmp_path / "lake", spark)

    done = job.take(10, reading(range(5, 14), "more"), text="more")

    assert done.note == "replaced whole, with 10 rows before"
    assert [(row["id"], row["more"]) for row in seen(job.path)] == named(range(5, 14))
    by_spark = store.read(spark, str(job.path)).orderBy("id").collect()
    assert [(row["id"], row["name"]) for row in by_spark] == named(range(5, 14))
    assert store.read_schema(str(job.path), TABLE) == schema("more")


def test_rows_that_cannot_be_told_apart_are_left_to_spark(
    tmp_path: Path, spark: SparkSession
) -> None:
    job = Job(tmp_path / "lake", spark)
    add(Committer(str(job.path)), [3])
    before = files(job.path)

    with pytest.raises(NotLocalError, match="cannot be told apart"):
        job.take(10, reading(range(5, 14)))

    assert files(job.path) == before
    assert not job.context.readings.rows()
    assert not job.context.quarantine.rows(str(TABLE), only_open=True, with_values=False)


def test_a_file_that_is_gone_is_left_to_spark(tmp_path: Path, spark: SparkSession) -> None:
    job = Job(tmp_path / "lake", spark)
    for file in job.path.glob("*.parquet"):
        file.unlink()

    with pytest.raises(NotLocalError, match="cannot be read"):
        job.take(10, reading(range(5, 14)))
