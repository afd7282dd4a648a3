"""The cleanup.policy of a compacted topic while records are taken away from it.

Kafka lets nobody delete records of a topic that is only compacted. So it is compacted and may be
deleted from meanwhile, and nothing of it expires: settings that no topic of ours has otherwise,
so that whoever finds them, after a kill at any place, knows what they are to be again.
"""

from collections.abc import Mapping
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

from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint, reach

_SECONDS: Final = 20
POLICY: Final = "cleanup.policy"
_COMPACT: Final = "compact"
_RETENTION: Final = "retention.ms"
_OPENED: Final = {POLICY: "compact,delete", _RETENTION: "-1"}


def entries_of(client: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    """All settings of a topic, also those that it has of the broker. Raises UNREACHABLE."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    answers: dict[Any, Any] = client.describe_configs([resource], request_timeout=_SECONDS)
    found: dict[str, ConfigEntry] = result(answers[resource], f"describing topic {topic}")
    return found


def is_opened(entries: Mapping[str, ConfigEntry]) -> bool:
    """Whether records of a compacted topic are being taken away, or were by one that was killed.

    Somebody else's policy has no retention of the topic's own beside it.
    """
    # The client has the number there, and says that it has the member.
    own = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    of_topic = {name: entry.value for name, entry in entries.items() if entry.source in own}
    return _OPENED.items() <= of_topic.items()


def open_for_deleting(client: AdminClient, topic: str) -> bool:
    """Let records be taken away; whether the topic is to be closed after it."""
    entries = entries_of(client, topic)
    if "delete" in (entries[POLICY].value or ""):
        return is_opened(entries)
    reach(Failpoint.BEFORE_TOPIC_OPEN)
    _alter(client, topic, [_set(name, value) for name, value in _OPENED.items()])
    reach(Failpoint.AFTER_TOPIC_OPEN)
    return True


def close(client: AdminClient, topic: str) -> None:
    """What an opened topic is specified to be: compacted, with no retention of its own."""
    reach(Failpoint.BEFORE_TOPIC_CLOSE)
    _alter(
        client,
        topic,
        [
            _set(POLICY, _COMPACT),
            ConfigEntry(_RETENTION, None, incremental_operation=AlterConfigOpType.DELETE),
        ],
    )
    reach(Failpoint.AFTER_TOPIC_CLOSE)


def result(future: Any, doing: str) -> Any:  # noqa: ANN401 - what the client answers
    """Raises UNREACHABLE."""
    try:
        return future.result()
    except KafkaException as error:
        raise CdcError(
            ErrorKind.UNREACHABLE, f"{doing} failed", detail=str(error.args[0].str())
        ) from None


def _set(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)


def _alter(client: AdminClient, topic: str, entries: list[ConfigEntry]) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    answers: dict[Any, Any] = client.incremental_alter_configs([resource], request_timeout=_SECONDS)
    result(answers[resource], f"altering topic {topic}")
