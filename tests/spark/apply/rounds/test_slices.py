"""The rows that a round works on stay the same while more lands."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

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


def test_a_landing_does_not_make_a_round_read_its_slice_again(
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
        hooks=LandingHooks(landed=landed.append, look=lambda _: None),
    )
    lander.land(events(spark, records[:20]))
    after = {record["topic"]: -1 for record in records}
    rows = log_slice.read(spark.newSession(), log, landed, after)
    rows.count()  # Delta caches the state of the log
    before = _persisted(spark)
    count = rows.persist().count()
    [mine] = _persisted(spark) - before

    lander.land(events(spark, records[20:40]))

    assert mine in _persisted(spark)
    assert (rows.count(), count) == (20, 20)
    rows.unpersist()


def test_only_files_with_notes_are_opened_for_notes(spark: SparkSession, tmp_path: Path) -> None:
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
        hooks=LandingHooks(landed=ignore, look=lambda _: None),
    )
    for part in (others[:1], notes[:2], others[1:2], others[2:3] + notes[2:3]):
        lander.land(events(spark, part))

    notes_read = note_rows(store.read_pinned(spark, log), log, noted)
    assert notes_read.count() == 3
    assert len(notes_read.inputFiles()) == 2

    # The log of an earlier version does not record which files have notes, so all are read.
    landed = json.loads(lander.position.metadata())
    del landed["noted"]
    spark.conf.set(METADATA_CONF, json.dumps(landed))
    spark.sql(f"DELETE FROM {spark_delta(log)} WHERE landing = 4").collect()
    notes_read = note_rows(store.read_pinned(spark, log), log, noted)
    assert notes_read.count() == 2
    position = landed_position(log)
    assert position is not None
    assert position.noted == ((0, 4),)


def ignore(_landing: Landing) -> None:
    """Do nothing: no round waits for the landing."""


def _persisted(spark: SparkSession) -> set[Any]:
    """Return the ids of the persisted RDDs."""
    jvm: Any = spark.sparkContext
    return set(jvm._jsc.getPersistentRDDs().keySet())
