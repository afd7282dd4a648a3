"""The rights of wal2lake's user at Kafka, as docs/how-to/own-servers.md names them."""

from collections.abc import Iterator
from typing import Final

from confluent_kafka.admin import (  # type: ignore[attr-defined] # they are re-exported without __all__
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from cdc.kafka.broker import Broker
from cdc.kafka.clients import admin

OF_TOPICS: Final = (
    AclOperation.CREATE,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DELETE,
)
OF_CLUSTER: Final = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)


def grant(broker: Broker, user: str, name: str) -> None:
    """Let the user of the pipeline of this name do what it needs; ``broker`` may grant it."""
    client = admin(broker)  # the answers come as long as it lives
    for future in client.create_acls(list(_bindings(user, name))).values():
        future.result(30)


def _bindings(user: str, name: str) -> Iterator[AclBinding]:
    for prefix in (f"{name}.", f"__debezium-heartbeat.{name}"):
        for operation in OF_TOPICS:
            yield _binding(user, ResourceType.TOPIC, prefix, operation)
    for prefix in (f"{name}.", "wal2lake-status"):
        yield _binding(user, ResourceType.GROUP, prefix, AclOperation.DESCRIBE)
    for operation in OF_CLUSTER:
        yield _binding(user, ResourceType.BROKER, "kafka-cluster", operation)


def _binding(user: str, kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    is_one = kind is ResourceType.BROKER
    pattern = ResourcePatternType.LITERAL if is_one else ResourcePatternType.PREFIXED
    allowed = AclPermissionType.ALLOW
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, allowed)
