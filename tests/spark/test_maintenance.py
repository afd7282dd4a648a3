"""Upkeep leaves the position of a table as it was, whatever the session did before."""

from itertools import pairwise
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from cdc.config import Job
from cdc.lake import store
from cdc.lake.maintenance import USUAL_SECONDS, Maintainer, optimize
from cdc.lake.progress import Position, position
from tests.waiting import until

pytestmark = pytest.mark.spark

EAGER = Job(maintain_every_commits=1, vacuum_every_hours=1e-12)


def operations(path: str) -> list[str]:
    return [commit["operation"] for commit in DeltaTable(path).history()]


def rows(spark: SparkSession, offset: int) -> DataFrame:
    return spark.sql(f"SELECT {offset} AS id").coalesce(1)


def test_a_vacuum_leaves_the_position_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """Also where the last that the session knows of lies back: that of a rewrite before."""
    session, path = spark.newSession(), str(tmp_path / "table")
    before, now = Position(epoch=1, offset=0), Position(epoch=1, offset=1)
    store.append(path, rows(session, 0), before)
    optimize(session, path, before.metadata())
    store.append(path, rows(session, 1), now)

    Maintainer(path, EAGER).committed(session, now.metadata())

    assert operations(path)[:3] == ["VACUUM END", "VACUUM START", "WRITE"]
    assert position(path) == now


def test_delta_keeps_commits_and_marks_as_long_as_files_are_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    session, path = spark.newSession(), str(tmp_path / "table")
    at, kept, versions = Position(epoch=1, offset=0), [], []
    for hours in (168, 1000.5, 1000.5, 24):
        store.append(path, rows(session, 0), at)
        policy = EAGER.model_copy(update={"vacuum_retention_hours": hours})
        Maintainer(path, policy.model_copy(update={"optimize_small_files": 99})).committed(
            session, at.metadata()
        )
        table = DeltaTable(path)
        kept.append([table.metadata().configuration.get(name) for name in USUAL_SECONDS])
        versions.append(table.version())
        assert position(path) == at

    month, longer, day = (f"interval {n} seconds" for n in (2_592_000, 3_601_800, 86_400))
    assert kept == [[None, None], [longer] * 2, [longer] * 2, [month, day]]
    commits = [after - before for before, after in pairwise(versions)]
    assert commits[0] == commits[2] == commits[1] + 1, "only a change of it is a commit"


def test_files_are_removed_when_the_configuration_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
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


def test_a_table_is_compacted_also_by_jobs_that_never_live_long(
    spark: SparkSession, tmp_path: Path
) -> None:
    session, path, at = spark.newSession(), str(tmp_path / "table"), Position(epoch=1, offset=0)
    policy = Job(maintain_every_commits=100, optimize_small_files=3)
    for number in range(4):
        store.append(path, rows(session, number), at)
        Maintainer(path, policy).committed(session, at.metadata())

    assert operations(path).count("OPTIMIZE") == 1
    assert len(DeltaTable(path).file_uris()) == 2
