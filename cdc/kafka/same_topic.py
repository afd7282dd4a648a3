"""Check that topics continue after what has landed: the same topics, complete and in order.

An offset gives the order of a topic's events and the place where the log continues. It means this
only in the topic it comes from: in a recreated topic of the same name, Kafka counts from zero.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cdc.errors import CdcError, ErrorKind, Reason

REMEDY: Final = "restore it, or run wal2lake up --new-epoch, then wal2lake resnapshot --all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTopic:
    """Says what the lake knows of a topic: Kafka's id of it, the last offset not needed again."""

    id: str
    last: int  # landed, or left behind by an epoch; -1 for nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingTopic:
    """Describes a topic as it is in the broker now."""

    id: str
    partitions: int
    first: int = 0  # the earliest offset of partition 0
    end: int = 0  # the offset after its last committed record


def refuse_broken(
    expected: Mapping[str, ExpectedTopic], existing: Mapping[str, ExistingTopic]
) -> None:
    """Raise CHAIN_BROKEN for the first expected topic that does not continue what has landed."""
    for topic, facts in sorted(expected.items()):
        refuse_other(topic, facts.id, existing.get(topic))
        _refuse_gap(topic, facts.last, existing[topic])


def refuse_other(topic: str, expected_id: str, existing: ExistingTopic | None) -> None:
    """Raise CHAIN_BROKEN unless it is still the same topic, with one partition."""
    if existing is None:
        what = f"topic {topic} no longer exists, but its events have landed"
        raise _broken(Reason.TOPIC_GONE, what)
    if existing.id != expected_id:
        what = f"topic {topic} is not the one whose events have landed: it was recreated"
        raise _broken(Reason.TOPIC_RECREATED, what)
    if existing.partitions != 1:
        what = f"topic {topic} has {existing.partitions} partitions and must have one"
        raise _broken(Reason.TOPIC_PARTITIONS, what, "several partitions give its events no order")


def broken(
    expected: Mapping[str, ExpectedTopic], existing: Mapping[str, ExistingTopic]
) -> Iterable[str]:
    """Return the topics whose offsets must be made to continue before a new epoch uses them."""
    return [
        topic
        for topic, facts in sorted(expected.items())
        if (now := existing.get(topic)) is None or now.partitions != 1 or now.end <= facts.last
    ]


def _refuse_gap(topic: str, last: int, existing: ExistingTopic) -> None:
    if existing.first > last + 1:
        missing = f"offsets {last + 1} to {existing.first - 1}"
        what = f"topic {topic} was shortened before all of it had landed: {missing} are missing"
        raise _broken(Reason.TOPIC_SHORTENED, what)
    if existing.end < last + 1:
        what = f"topic {topic} lost events: it ends at offset {existing.end}, but {last} has landed"
        raise _broken(Reason.TOPIC_CUT_OFF, what)


def _broken(reason: Reason, message: str, detail: str = "") -> CdcError:
    return CdcError(ErrorKind.CHAIN_BROKEN, message, detail=detail, remedy=REMEDY, reason=reason)
