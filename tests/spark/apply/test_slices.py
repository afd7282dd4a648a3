"""The rows a round looks at stay as they are while more lands."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cdc.apply.log_replay import do_nothing
from cdc.apply.rounds import log_slice
from cdc.apply.table.structure_notes import note_rows
from cdc.config import Job
from cdc.events.values.sql_text import spark_delta
from cdc.lake.table import store
from cdc.lake.table.positions import METADATA_CONF, LandedPosition, landed_position
from cdc.land.landing import Landing
from cdc.land.log_table import create_log
from cdc.land.query import Lander, LandingHooks
from tests.spark.recorded_pipeline import events, landed_topics


def test_what_lands_meanwhile_does_not_make_a_round_read_its_slice_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, begin = str(tmp_path / "log"), LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
    landed: list[Any] = []
    records = landed_topics()
    create_log(spark, log, begin)
    lander = Lander(
        spark,
        log,
        begin,
        Job(),
        notes_topic="n",
        hooks=LandingHooks(landed=landed.append, look=do_nothing),
    )
    lander.land(events(spark, records[:20]), 0)
    rows = log_slice.read(spark.newSession(), log, landed, {})
    rows.count()  # Delta keeps what it knows of the log
    before = _kept(spark)
    found = rows.persist().count()
    [mine] = _kept(spark) - before

    lander.land(events(spark, records[20:40]), 1)

    assert mine in _kept(spark)
    assert (rows.count(), found) == (20, 20)
    rows.unpersist()


def test_for_the_notes_only_files_with_some_are_opened(spark: SparkSession, tmp_path: Path) -> None:
    log, begin = str(tmp_path / "log"), LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
    records = landed_topics()
    noted, other = sorted({record["topic"] for record in records})[:2]
    notes = [record for record in records if record["topic"] == noted]
    others = [record for record in records if record["topic"] == other]
    create_log(spark, log, begin)
    lander = Lander(
        spark,
        log,
        begin,
        Job(),
        notes_topic=noted,
        hooks=LandingHooks(landed=nothing_more, look=do_nothing),
    )
    for number, part in enumerate((others[:1], notes[:2], others[1:2], others[2:3] + notes[2:3])):
        lander.land(events(spark, part), number)

    found = note_rows(store.read_pinned(spark, log), log, noted)
    assert found.count() == 3
    assert len(found.inputFiles()) == 2

    # A log of an earlier version says nothing of it: all of it is looked at.
    landed = json.loads(lander.position.metadata())
    del landed["noted"]
    spark.conf.set(METADATA_CONF, json.dumps(landed))
    spark.sql(f"DELETE FROM {spark_delta(log)} WHERE landing = 4").collect()
    found = note_rows(store.read_pinned(spark, log), log, noted)
    assert found.count() == 2
    position = landed_position(log)
    assert position is not None
    assert position.noted == ((0, 4),)


def nothing_more(_landing: Landing) -> None:
    """Nobody waits for what has landed."""


def _kept(spark: SparkSession) -> set[Any]:
    """Ids of what Spark holds in memory."""
    jvm: Any = spark.sparkContext
    return set(jvm._jsc.getPersistentRDDs().keySet())
