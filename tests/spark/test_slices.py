"""The rows a round looks at stay as they are while more lands."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cdc.apply import slices
from cdc.apply.land import Lander, create_log
from cdc.apply.replaying import nothing
from cdc.config import Job
from cdc.lake.progress import LandedPosition
from tests.spark.recorded_pipeline import events, landed_topics


def test_what_lands_meanwhile_does_not_make_a_round_read_its_slice_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, begin = str(tmp_path / "log"), LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
    landed: list[Any] = []
    records = landed_topics()
    create_log(spark, log, begin)
    lander = Lander(spark, log, begin, landed.append, Job(), look=nothing)
    lander.land(events(spark, records[:20]), 0)
    rows = slices.read(spark.newSession(), log, landed, {})
    rows.count()  # Delta keeps what it knows of the log
    before = _kept(spark)
    found = rows.persist().count()
    [mine] = _kept(spark) - before

    lander.land(events(spark, records[20:40]), 1)

    assert mine in _kept(spark)
    assert (rows.count(), found) == (20, 20)
    rows.unpersist()


def _kept(spark: SparkSession) -> set[Any]:
    """Ids of what Spark holds in memory."""
    jvm: Any = spark.sparkContext
    return set(jvm._jsc.getPersistentRDDs().keySet())
