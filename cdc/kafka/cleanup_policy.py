"""Change the cleanup.policy of a compacted topic while records are deleted from it.

Kafka deletes no records of a topic that is only compacted. So its policy is ``compact,delete`` in
the meantime, with unlimited retention. No other topic of ours has these settings: whoever finds
them after a kill at any place knows what to set them back to.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from cdc.failpoints import Failpoint, reach
from cdc.kafka.refusal import failed
from cdc.waiting import until

_SECONDS: Final = 20
POLICY: Final = "cleanup.policy"
_COMPACT: Final = "compact"
_RETENTION: Final = "retention.ms"
_OPENED: Final = {POLICY: "compact,delete", _RETENTION: "-1"}
_SEGMENT: Final = "segment.ms"
_SHORT: Final = "1"


def entries_of(client: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    """Return all settings of a topic, including the broker's defaults. Raises UNREACHABLE."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    answers: dict[Any, Any] = client.describe_configs([resource], request_timeout=_SECONDS)
    entries: dict[str, ConfigEntry] = result(answers[resource], f"describing topic {topic}")
    return entries


def is_opened(entries: Mapping[str, ConfigEntry]) -> bool:
    """Return whether records of a compacted topic are being deleted, or were by a killed process.

    The same policy set by another program has no retention set for the topic itself beside it.
    """
    # The client's type is the enum, but the value is its number.
    own = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    of_topic = {name: entry.value for name, entry in entries.items() if entry.source in own}
    return _OPENED.items() <= of_topic.items()


def has_short_segments(entries: Mapping[str, ConfigEntry]) -> bool:
    """Return whether every record begins a segment, or did when a process was killed."""
    return _SEGMENT in entries and entries[_SEGMENT].value == _SHORT


def shorten_segments(client: AdminClient, topic: str) -> None:
    """Have the next record begin a segment. Raises UNREACHABLE, and TIMEOUT as ``close`` does."""
    _alter(client, topic, [_set(_SEGMENT, _SHORT)])
    _await(client, topic, has_short_segments)


def lengthen_segments(client: AdminClient, topic: str) -> None:
    """Give a topic's segments the broker's time again; raises as ``shorten_segments`` does."""
    _alter(client, topic, [_delete(_SEGMENT)])
    _await(client, topic, lambda entries: not has_short_segments(entries))


def open_for_deleting(client: AdminClient, topic: str) -> bool:
    """Allow records to be deleted; return whether the topic must be closed afterwards."""
    entries = entries_of(client, topic)
    if "delete" in (entries[POLICY].value or ""):
        return is_opened(entries)
    reach(Failpoint.BEFORE_TOPIC_OPEN)
    _alter(client, topic, [_set(name, value) for name, value in _OPENED.items()])
    reach(Failpoint.AFTER_TOPIC_OPEN)
    return True


def close(client: AdminClient, topic: str) -> None:
    """Set an opened topic back to its specified settings: compacted, without its own retention.

    A broker may describe the earlier settings for a moment after the change; wait until it does
    not. Raises UNREACHABLE, and TIMEOUT if it still does after 20 seconds.
    """
    reach(Failpoint.BEFORE_TOPIC_CLOSE)
    _alter(client, topic, [_set(POLICY, _COMPACT), _delete(_RETENTION)])
    reach(Failpoint.AFTER_TOPIC_CLOSE)
    _await(client, topic, lambda entries: not is_opened(entries))


def _await(
    client: AdminClient, topic: str, is_right: Callable[[Mapping[str, ConfigEntry]], bool]
) -> None:
    until(
        lambda: is_right(entries_of(client, topic)),
        _SECONDS,
        f"the broker did not apply the settings of topic {topic}",
    )


def result(future: Any, doing: str) -> Any:  # noqa: ANN401 - what the client answers
    """Return a request's result; raise what ``failed`` says. ``doing`` begins the message."""
    try:
        return future.result()
    except KafkaException as error:
        raise failed(doing, error) from None


def _set(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)


def _delete(name: str) -> ConfigEntry:
    return ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE)


def _alter(client: AdminClient, topic: str, entries: list[ConfigEntry]) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    answers: dict[Any, Any] = client.incremental_alter_configs([resource], request_timeout=_SECONDS)
    result(answers[resource], f"altering topic {topic}")
