"""Upkeep leaves rows and position of a table as they were, whatever the session did before."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc.config import Job
from cdc.lake import store
from cdc.lake.maintenance import Maintainer
from cdc.lake.progress import Position, position

pytestmark = pytest.mark.spark

EAGER = Job(maintain_every_commits=1, optimize_small_files=2, vacuum_every_hours=1e-9)


def rows(spark: SparkSession, offset: int) -> DataFrame:
    return spark.sql(f"SELECT {offset} AS id").coalesce(1)


def test_the_newest_commit_after_upkeep_says_how_far_the_table_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Also where nothing was optimized in this session, or something that lies back."""
    session, path = spark.newSession(), str(tmp_path / "table")
    maintainer, seen = Maintainer(path, EAGER), []
    for offset in range(3):
        at = Position(epoch=1, offset=offset)
        store.append(path, rows(session, offset), at)
        maintainer.committed(session, at.metadata())
        seen.append(position(path))

    assert [at.offset for at in seen if at is not None] == [0, 1, 2]
    assert sorted(row.id for row in store.read(session, path).collect()) == [0, 1, 2]
