"""Say which topics the captured tables need, with their settings."""

from cdc.capture.continuity import marker_topic
from cdc.config import Config
from cdc.kafka.topics import TopicSpec
from cdc.source.catalog.catalog import SourceTable
from cdc.tables import HEARTBEAT, STRUCTURE, TableMode


def topic_specs(config: Config, tables: list[SourceTable]) -> list[TopicSpec]:
    """Return the topics of these tables and the control topics, with their settings.

    Topics of keyed tables are compacted. Events of tables without a key share one key, so their
    topics are not. A topic keeps the policy that its table's first key called for; the lake
    records when the key changed.

    Events get the broker's timestamps: it refuses a producer's timestamp that is an hour ahead of
    its clock, and the worker would be stuck as long as their clocks differ.
    """
    timed = {"message.timestamp.type": "LogAppendTime"}
    kept = timed | {"cleanup.policy": "delete", "retention.ms": "-1"}
    compacted = timed | {
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": str(config.kafka.min_compaction_lag_ms),
        "delete.retention.ms": str(config.kafka.delete_retention_ms),
    }
    keyed = [t.table.topic(config.name) for t in tables if t.mode is TableMode.KEYED]
    others = [t.table.topic(config.name) for t in tables if t.mode is not TableMode.KEYED]
    control = [table.topic(config.name) for table in (HEARTBEAT, STRUCTURE)]
    return [
        *(TopicSpec(name, compacted, instead=kept) for name in keyed),
        *(TopicSpec(name, kept, instead=compacted) for name in others),
        *(TopicSpec(name, compacted) for name in (*control, debezium_heartbeat_topic(config.name))),
        TopicSpec(marker_topic(config), kept),
    ]


def debezium_heartbeat_topic(prefix: str) -> str:
    """Return the topic of Debezium's own heartbeats, which bypass the heartbeat table."""
    return f"__debezium-heartbeat.{prefix}"
