"""Maintenance keeps the position of a table, whatever the session did before."""

import os
import time
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.config import Job
from cdc.events.values.sql_text import spark_delta
from cdc.lake.table import store
from cdc.lake.table.positions import Position, position
from cdc.lake.upkeep.kept_versions import USUAL
from cdc.lake.upkeep.maintenance import Maintainer, optimize
from cdc.lake.upkeep.old_versions import clean
from tests.aged import age
from tests.waiting import until

pytestmark = pytest.mark.spark

EAGER = Job(maintain_every_commits=1, vacuum_every_hours=1e-12)


def operations(path: str) -> list[str]:
    return [commit["operation"] for commit in DeltaTable(path).history()]


def rows(spark: SparkSession, offset: int) -> DataFrame:
    return spark.sql(f"SELECT {offset} AS id").coalesce(1)


def log(path: str) -> Path:
    return Path(path) / "_delta_log"


def first_left(path: str) -> int:
    """Return the first version of which the log has any file, including checksums."""
    names = [file.name.removeprefix(".")[:20] for file in log(path).iterdir()]
    return min(int(name) for name in names if name.isdecimal())


def read_at(path: str, version: int) -> list[int]:
    """Return the ids at a version, read by delta-rs."""
    opened = DeltaTable(path, version=version)
    table = pa.table(QueryBuilder().register("t", opened).execute("SELECT id FROM t").read_all())
    return [row["id"] for row in table.to_pylist()]


def test_a_search_for_strays_keeps_the_position(spark: SparkSession, tmp_path: Path) -> None:
    """The position stays even if the session still holds an older one, from an earlier rewrite."""
    session, path = spark.newSession(), str(tmp_path / "table")
    before, now = Position(epoch=1, offset=0), Position(epoch=1, offset=1)
    store.append(path, rows(session, 0), before)
    optimize(session, path, before.metadata())
    store.append(path, rows(session, 1), now)

    stray(path)

    Maintainer(path, EAGER).committed(session, now.metadata())

    assert operations(path)[0] == "SET TBLPROPERTIES"
    assert "wal2lake" in str(DeltaTable(path).history(1)[0]["engineInfo"]), "Spark is not asked"
    assert position(path) == now
    assert not list(Path(path).glob("stray*"))


def test_what_is_not_understood_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    session, path = spark.newSession(), str(tmp_path / "table")
    before, now = Position(epoch=1, offset=0), Position(epoch=1, offset=1)
    store.append(path, rows(session, 0), before)
    optimize(session, path, before.metadata())
    store.set_properties(session, path, {"delta.enableChangeDataFeed": "true"})
    store.append(path, rows(session, 1), now)
    rename_a_file(path)
    stray(path)

    Maintainer(path, EAGER).committed(session, now.metadata())

    assert operations(path)[:3] == ["VACUUM END", "VACUUM START", "SET TBLPROPERTIES"]
    assert "Spark" in str(DeltaTable(path).history(3)[2]["engineInfo"])
    assert position(path) == now
    assert not list(Path(path).glob("stray*"))
    assert sorted(read_at(path, DeltaTable(path).version())) == [0, 1]


def stray(path: str) -> None:
    """Write a file of two months ago that is in no version."""
    file = Path(path) / "stray.parquet"
    file.write_bytes(b"x")
    then = time.time() - 60 * 24 * 3600
    os.utime(file, (then, then))


def rename_a_file(path: str) -> None:
    """Have the newest entry name its file by a whole URL, as only Spark follows it."""
    entry = max(log(path).glob("*.json"))
    text = entry.read_text()
    name = next(Path(uri).name for uri in DeltaTable(path).file_uris() if Path(uri).name in text)
    entry.write_text(text.replace(f'"{name}"', f'"{(Path(path) / name).as_uri()}"'))
    entry.with_name(f".{entry.name}.crc").unlink()


def test_commits_and_marks_are_kept_as_long_as_files(spark: SparkSession, tmp_path: Path) -> None:
    session, path = spark.newSession(), str(tmp_path / "table")
    at, kept, versions = Position(epoch=1, offset=0), [], []
    for hours in (168, 1000.5, 1000.5, 24):
        store.append(path, rows(session, 0), at)
        policy = EAGER.model_copy(update={"vacuum_retention_hours": hours})
        Maintainer(path, policy.model_copy(update={"optimize_small_files": 99})).committed(
            session, at.metadata()
        )
        table = DeltaTable(path)
        kept.append([table.metadata().configuration.get(name) for name in USUAL])
        versions.append(table.version())
        assert position(path) == at

    week, longer, day = (f"interval {n} seconds" for n in (604_800, 3_601_800, 86_400))
    assert kept == [[interval, interval, "false"] for interval in (week, longer, longer, day)]
    commits = [after - before for before, after in pairwise(versions)]
    assert commits[0] == commits[2] == commits[1] + 1, "only a changed interval takes a commit"


def test_commits_are_removed_when_no_kept_version_needs_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A table that was idle for longer than the retention can be opened as it was before."""
    session, path, at = spark.newSession(), str(tmp_path / "table"), Position(epoch=1, offset=0)
    for number in range(3):
        store.append(path, rows(session, number), at)
    Maintainer(path, EAGER).committed(session, at.metadata())
    store.set_properties(session, path, {"delta.checkpointInterval": "4"})
    for number in range(3, 7):
        store.append(path, rows(session, number), at)
    newest_then = DeltaTable(path).version()
    age(path, days=40)

    for number in range(7, 15):
        store.append(path, rows(session, number), at)
    assert sorted(read_at(path, newest_then)) == list(range(7))
    Maintainer(path, EAGER).committed(session, at.metadata())

    assert newest_then - 4 < first_left(path) <= newest_then
    assert sorted(read_at(path, newest_then)) == list(range(7))
    assert sorted(row.id for row in store.read(session, path, newest_then).collect()) == [*range(7)]
    assert position(path) == at


def test_the_writing_session_continues_after_its_log_was_cleaned(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The session needs no file it has read: each commit is followed by a complete cleaning."""
    session, path, at = spark.newSession(), str(tmp_path / "table"), Position(epoch=1, offset=0)
    store.append(path, rows(session, 0), at)
    marks = {"delta.checkpointInterval": "3", "delta.enableDeletionVectors": "true"}
    store.set_properties(session, path, marks)
    firsts = []
    for number in range(1, 10):
        store.append(path, rows(session, number), at)
        clean(path, time.time())
        session.sql(f"DELETE FROM {spark_delta(path)} WHERE id = {number - 1}")
        clean(path, time.time())
        firsts.append(first_left(path))

    assert len(set(firsts)) > 3
    assert firsts[-1] >= DeltaTable(path).version() - 3
    assert [row.id for row in store.read(session, path).collect()] == [9]
    assert read_at(path, DeltaTable(path).version()) == [9]


def test_files_are_removed_after_the_configured_time(spark: SparkSession, tmp_path: Path) -> None:
    session, path = spark.newSession(), str(tmp_path / "table")
    at = Position(epoch=1, offset=0)
    store.append(path, rows(session, 0), at)
    [first] = tmp_path.glob("table/*.parquet")
    store.overwrite(path, rows(session, 1), at)
    policy = EAGER.model_copy(update={"vacuum_retention_hours": 1 / 3600})
    maintainer = Maintainer(path, policy)

    def removed() -> bool:
        maintainer.committed(session, at.metadata())
        return not first.exists()

    until(removed)
    assert [row.id for row in store.read(session, path).collect()] == [1]


@pytest.mark.parametrize("hours", [0.2, 3])
def test_a_file_is_kept_for_the_retention_after_its_removal(
    spark: SparkSession, tmp_path: Path, hours: float
) -> None:
    """The file's age before its removal does not count: its version was the newest until now."""
    session, path, at = spark.newSession(), str(tmp_path / "table"), Position(epoch=1, offset=0)
    store.append(path, rows(session, 0), at)
    [first] = tmp_path.glob("table/*.parquet")
    age(path, days=1)
    os.utime(first, (time.time() - 24 * 3600,) * 2)
    store.overwrite(path, rows(session, 1), at)

    policy = EAGER.model_copy(update={"vacuum_retention_hours": hours})
    Maintainer(path, policy).committed(session, at.metadata())

    assert operations(path)[0] == "SET TBLPROPERTIES"
    assert read_at(path, 0) == [0]


def test_a_table_is_compacted_even_by_jobs_that_run_briefly(
    spark: SparkSession, tmp_path: Path
) -> None:
    session, path, at = spark.newSession(), str(tmp_path / "table"), Position(epoch=1, offset=0)
    policy = Job(maintain_every_commits=100, optimize_small_files=3)
    for number in range(4):
        store.append(path, rows(session, number), at)
        Maintainer(path, policy).committed(session, at.metadata())

    assert operations(path).count("OPTIMIZE") == 1
    assert len(DeltaTable(path).file_uris()) == 2


def test_a_file_much_larger_than_the_later_ones_is_not_rewritten(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Otherwise each few commits would cost as much as the table, and old versions pile up."""
    session, path, at = spark.newSession(), str(tmp_path / "table"), Position(epoch=1, offset=0)
    policy = Job(maintain_every_commits=1, optimize_small_files=3)
    maintainer = Maintainer(path, policy)
    store.append(path, session.range(200_000).select(F.rand(1).alias("id")).coalesce(1), at)
    [large] = DeltaTable(path).file_uris()

    for number in range(7):
        few = session.range(1).select(F.lit(float(number)).alias("id"))
        store.append(path, few.coalesce(1), at)
        maintainer.committed(session, at.metadata())

    assert operations(path).count("OPTIMIZE") > 1
    assert large in DeltaTable(path).file_uris()
    assert len(DeltaTable(path).file_uris()) <= 3


def test_a_large_file_is_rewritten_without_its_deleted_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Only the share of marked rows matters, so it happens even if no row is ever added."""
    session, path, at = spark.newSession(), str(tmp_path / "table"), Position(epoch=1, offset=0)
    whole = session.range(5_000_000).select("id", F.rand(1).alias("value")).coalesce(1)
    store.append(path, whole, at)
    store.set_properties(session, path, {"delta.enableDeletionVectors": "true"})
    maintainer = Maintainer(path, Job(maintain_every_commits=1))

    session.sql(f"DELETE FROM {spark_delta(path)} WHERE id % 10 = 0").collect()
    maintainer.committed(session, at.metadata())
    assert operations(path)[0] == "DELETE", "a tenth is not worth a rewrite"
    session.sql(f"DELETE FROM {spark_delta(path)} WHERE id % 5 < 2").collect()
    maintainer.committed(session, at.metadata())

    assert operations(path)[0] == "REORG"
    assert pa.table(DeltaTable(path).deletion_vectors()).num_rows == 0
    assert store.read(session, path).count() == 3_000_000
    assert position(path) == at
