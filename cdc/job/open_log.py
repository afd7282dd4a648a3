"""Opens the log, and checks that its events come from these topics and this source."""

from dataclasses import replace

from pyspark.sql import SparkSession

from cdc.capture.recorded_origin import recorded_origin, recorded_topics
from cdc.failpoints import Failpoint, reach
from cdc.kafka.same_topic import refuse_broken
from cdc.kafka.topic_watch import existing_topics
from cdc.lake.layout import epochs_path, log_path
from cdc.lake.records import epochs
from cdc.lake.table import positions
from cdc.lake.table.positions import LandedPosition
from cdc.land.log_table import create_log
from cdc.source.server.origin import Origin, refuse_other
from cdc.state.pipeline import Pipeline


def open_log(
    spark: SparkSession, pipeline: Pipeline, topics: list[str], source: Origin
) -> LandedPosition:
    """Return the log's position; create the log where there is none.

    Raises CHAIN_BROKEN where the log's events come from another topic or another source.
    """
    path, epoch = log_path(pipeline.config), epochs.last(epochs_path(pipeline.config))
    landed = positions.landed_position(path)
    current = existing_topics(pipeline.endpoints.kafka, topics)
    expected = recorded_topics(landed, epoch, topics)
    refuse_broken(expected, current)
    refuse_other(recorded_origin(landed, epoch), source, reached=0)
    before = landed or LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
    position = replace(
        before,
        epoch=epochs.number(epoch),
        topic_ids={**before.topic_ids, **{topic: facts.id for topic, facts in current.items()}},
        # Events that an epoch has skipped may be gone from their topic.
        offsets=before.offsets
        | {
            topic: max(last, current[topic].first - 1)
            for topic, last in before.offsets.items()
            if topic in expected
        },
        system=source.system,
        timeline=source.timeline,
    )
    if landed is None:
        reach(Failpoint.BEFORE_LOG_CREATE)
        create_log(spark, path, position)
        reach(Failpoint.AFTER_LOG_CREATE)
    return position
