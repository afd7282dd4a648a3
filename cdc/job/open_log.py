"""Opens the log: what has landed, and that topics and source are those whose events these are."""

from dataclasses import replace

from pyspark.sql import SparkSession

from cdc.capture.provenance import known_origin, known_topics
from cdc.config import Config
from cdc.failpoints import Failpoint, reach
from cdc.kafka.same_topic import refuse_broken
from cdc.kafka.topic_watch import found
from cdc.lake.layout import epochs_path, log_path
from cdc.lake.records import epochs
from cdc.lake.table import positions
from cdc.lake.table.positions import LandedPosition
from cdc.land.query import create_log
from cdc.source.server.origin import Origin, refuse_other


def open_log(
    spark: SparkSession, config: Config, kafka: str, topics: list[str], source: Origin
) -> LandedPosition:
    """Return the log's position; create the log where there is none.

    Raises CHAIN_BROKEN for a topic or a source that is not the one whose events have landed.
    """
    path, epoch = log_path(config), epochs.last(epochs_path(config))
    landed = positions.landed_position(path)
    now = found(kafka, topics)
    expected = known_topics(landed, epoch, topics)
    refuse_broken(expected, now)
    refuse_other(known_origin(landed, epoch), source, reached=0)
    begun = landed or LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
    position = replace(
        begun,
        epoch=epochs.number(epoch),
        topic_ids={**begun.topic_ids, **{topic: facts.id for topic, facts in now.items()}},
        # What an epoch has left behind may be gone from its topic.
        offsets=begun.offsets
        | {t: max(last, now[t].first - 1) for t, last in begun.offsets.items() if t in expected},
        system=source.system,
        timeline=source.timeline,
    )
    if landed is None:
        reach(Failpoint.BEFORE_LOG_CREATE)
        create_log(spark, path, position)
        reach(Failpoint.AFTER_LOG_CREATE)
    return position
