"""Create topics with the settings they need, and check those of existing ones."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.kafka.cleanup_policy import (
    POLICY,
    close,
    entries_of,
    has_short_segments,
    is_opened,
    lengthen_segments,
)
from cdc.kafka.clients import admin
from cdc.kafka.refusal import failed, forbidden, refusal

SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """Asks for a topic of one partition, so that offsets give the order, with these ``settings``.

    An existing topic may have all of the settings in ``instead``, unless that is empty.
    """

    name: str
    settings: dict[str, str] = field(default_factory=dict)
    instead: dict[str, str] = field(default_factory=dict)


def ensure_topics(broker: Broker, specs: Iterable[TopicSpec], *, replication: int = 1) -> None:
    """Create the topics that are missing and check the others.

    Settings that a killed ``empty_topic`` or ``end_segment`` left behind are set back.
    Raises CONFLICT for a topic with several partitions or with other settings, UNREACHABLE, and
    TIMEOUT like ``close``.
    """
    wanted = {spec.name: spec for spec in specs}
    client = admin(broker)
    existing = _partitions(client, broker, wanted)
    new = [
        NewTopic(name, num_partitions=1, replication_factor=replication, config=spec.settings)
        for name, spec in wanted.items()
        if name not in existing
    ]
    _create(client, new)
    _check(client, [spec for name, spec in wanted.items() if name in existing], existing)


def topic_ids(broker: Broker, topics: Iterable[str]) -> dict[str, str]:
    """Return Kafka's id of each topic that exists; a recreated topic has another id.

    Raises UNREACHABLE.
    """
    names = list(topics)
    if not names:
        return {}
    client = admin(broker)
    _partitions(client, broker, names)  # for its clear error if no broker answers
    ids = {}
    for name, future in client.describe_topics(
        TopicCollection(names), request_timeout=SECONDS
    ).items():
        try:
            ids[name] = str(future.result().topic_id)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise failed(f"describing topic {name}", error) from None
    return ids


def delete_topics(broker: Broker, topics: Iterable[str]) -> None:
    """Delete those of the topics that exist. Raises UNREACHABLE."""
    client = admin(broker)
    names = list(_partitions(client, broker, topics))
    if not names:
        return
    for name, future in client.delete_topics(names, operation_timeout=SECONDS).items():
        try:
            future.result()
        except KafkaException as error:
            raise failed(f"deleting topic {name}", error) from None


def unreachable(
    broker: Broker, error: KafkaException, *, start: str = "start the broker"
) -> CdcError:
    """Return the error of a broker that does not answer: CONFIG if it refuses us, else UNREACHABLE.

    Asks the broker once more for its reason. ``start`` is the remedy where there is none to ask.
    """
    found: KafkaError = error.args[0]
    right = forbidden(found, f"a request to Kafka at {broker}")
    return (
        right
        or refusal(broker)
        or CdcError(
            ErrorKind.UNREACHABLE,
            f"no Kafka broker answers at {broker}",
            detail=str(found.str()),
            remedy=f"{start}, or correct kafka.bootstrap_servers",
        )
    )


def _partitions(client: AdminClient, broker: Broker, names: Iterable[str]) -> dict[str, int]:
    """Return the number of partitions of each topic that exists."""
    try:
        topics = client.list_topics(timeout=SECONDS).topics
    except KafkaException as error:
        raise unreachable(broker, error) from None
    return {name: len(topics[name].partitions) for name in names if name in topics}


def _create(client: AdminClient, new: list[NewTopic]) -> None:
    if not new:
        return
    for name, future in client.create_topics(new, operation_timeout=SECONDS).items():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise failed(f"creating topic {name}", error) from None


def _check(client: AdminClient, specs: list[TopicSpec], partitions: dict[str, int]) -> None:
    if not specs:
        return
    resources = [ConfigResource(ResourceType.TOPIC, spec.name) for spec in specs]
    answers: dict[Any, Any] = client.describe_configs(resources, request_timeout=SECONDS)
    for spec, resource in zip(specs, resources, strict=True):
        try:
            entries = answers[resource].result()
        except KafkaException as error:
            raise failed(f"describing topic {spec.name}", error) from None
        if is_opened(entries) and _compacts(spec):
            close(client, spec.name)
            entries = entries_of(client, spec.name)
        if has_short_segments(entries):
            lengthen_segments(client, spec.name)
        actual = {key: entry.value for key, entry in entries.items()}
        _compare(spec, actual, partitions[spec.name])


def _compacts(spec: TopicSpec) -> bool:
    return any(settings.get(POLICY) == "compact" for settings in (spec.settings, spec.instead))


def _compare(spec: TopicSpec, actual: dict[str, str | None], partitions: int) -> None:
    if partitions != 1:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"topic {spec.name} has {partitions} partitions and must have one",
            remedy="change the key name in wal2lake.yaml, or delete the topic if nobody needs it",
        )
    if spec.instead and spec.instead.items() <= actual.items():
        return
    for key, value in spec.settings.items():
        if actual.get(key) != value:
            raise CdcError(
                ErrorKind.CONFLICT,
                f"topic {spec.name} has {key}={actual.get(key)} and must have {value}",
                remedy=f"set it with kafka-configs.sh --alter --add-config {key}={value}",
            )
