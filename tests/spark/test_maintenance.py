"""Upkeep leaves the position of a table as it was, whatever the session did before."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from cdc.config import Job
from cdc.lake import store
from cdc.lake.maintenance import Maintainer, optimize
from cdc.lake.progress import Position, position

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
