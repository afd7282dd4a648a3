"""Whether the topics go on behind what has landed: the same ones, whole, in one order.

An offset is the order of the events of a topic and says where the log goes on. It says so only
of the topic that it was given by: Kafka counts from zero again in another of the same name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cdc.errors import CdcError, ErrorKind, Reason

REMEDY: Final = "restore it; or wal2lake up --new-epoch, then wal2lake resnapshot --all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is known of a topic: Kafka's id of it, and the last offset that is not needed again."""

    id: str
    last: int  # landed, or left behind by an epoch; -1 for nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A topic as the broker has it."""

    id: str
    partitions: int
    first: int = 0  # the earliest offset of partition 0
    end: int = 0  # the offset after its last committed record


def refuse_broken(expected: Mapping[str, Expected], found: Mapping[str, Found]) -> None:
    """Raises CHAIN_BROKEN for the first of the expected topics that does not go on."""
    for topic, known in sorted(expected.items()):
        refuse_other(topic, known.id, found.get(topic))
        _refuse_gap(topic, known.last, found[topic])


def refuse_other(topic: str, known: str, found: Found | None) -> None:
    """Raises CHAIN_BROKEN where it is not the one topic of one partition that it was."""
    if found is None:
        raise _broken(Reason.TOPIC_GONE, f"topic {topic} is gone, and its events have landed")
    if found.id != known:
        what = f"topic {topic} is not the one whose events have landed: it was recreated"
        raise _broken(Reason.TOPIC_RECREATED, what)
    if found.partitions != 1:
        what = f"topic {topic} has {found.partitions} partitions and must have one"
        raise _broken(Reason.TOPIC_PARTITIONS, what, "its events have no order any more")


def broken(expected: Mapping[str, Expected], found: Mapping[str, Found]) -> Iterable[str]:
    """The topics whose offsets have to be made to go on, before a new epoch may use them."""
    return [
        topic
        for topic, known in sorted(expected.items())
        if (have := found.get(topic)) is None or have.partitions != 1 or have.end <= known.last
    ]


def _refuse_gap(topic: str, last: int, found: Found) -> None:
    if found.first > last + 1:
        missing = f"offsets {last + 1} to {found.first - 1}"
        what = f"topic {topic} was shortened before all of it had landed: {missing} are missing"
        raise _broken(Reason.TOPIC_SHORTENED, what)
    if found.end < last + 1:
        what = f"topic {topic} ends at offset {found.end} and {last} has landed: it lost events"
        raise _broken(Reason.TOPIC_CUT_OFF, what)


def _broken(reason: Reason, message: str, detail: str = "") -> CdcError:
    return CdcError(ErrorKind.CHAIN_BROKEN, message, detail=detail, remedy=REMEDY, reason=reason)
