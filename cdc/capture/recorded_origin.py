"""Say which source and topics the lake's events came from."""

from collections.abc import Collection

from cdc.kafka.same_topic import ExpectedTopic
from cdc.lake.records.epochs import Epoch
from cdc.lake.table.positions import LandedPosition
from cdc.source.server.origin import Origin


def recorded_topics(
    landed: LandedPosition | None, epoch: Epoch | None, topics: Collection[str]
) -> dict[str, ExpectedTopic]:
    """Return id and last offset of those ``topics`` that the log or a newer epoch has recorded."""
    ids = landed.topic_ids if landed else {}
    if (newer := _newer(landed, epoch)) is not None:
        ids = {**ids, **newer.topic_ids}
    last = landed.offsets if landed else {}
    return {
        topic: ExpectedTopic(id=ids[topic], last=max(last.get(topic, -1), _left(epoch, topic)))
        for topic in topics
        if topic in ids
    }


def recorded_origin(landed: LandedPosition | None, epoch: Epoch | None) -> Origin:
    """Return the source that the lake follows.

    It is empty (system "" and timeline 0) for a new lake, or one of an earlier version.
    """
    if (newer := _newer(landed, epoch)) is not None and newer.system:
        return Origin(system=newer.system, timeline=newer.timeline)
    if landed is None:
        return Origin(system="", timeline=0)
    return Origin(system=landed.system, timeline=landed.timeline)


def _newer(landed: LandedPosition | None, epoch: Epoch | None) -> Epoch | None:
    """Return the epoch if no event of it has landed yet, else None."""
    if epoch is None or (landed is not None and landed.epoch >= epoch.number):
        return None
    return epoch


def _left(epoch: Epoch | None, topic: str) -> int:
    return -1 if epoch is None else epoch.left_behind_in(topic)
