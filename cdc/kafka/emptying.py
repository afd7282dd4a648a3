"""Taking the records of a topic away, and leaving the topic: its offsets go on."""

from typing import Any, Final

from confluent_kafka import OFFSET_END, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.topics import SECONDS, admin, topic_ids

_POLICY: Final = "cleanup.policy"
_DELETE: Final = "delete"
_SETTLE_SECONDS: Final = 20


def empty_topic(bootstrap: str, topic: str, *, before: int | None = None) -> bool:
    """Delete the records of a topic of one partition; False where there is no such topic.

    ``before`` is the offset of the first record that stays; without it none does. A compacted
    topic allows this to nobody, so its policy is another meanwhile. Raises UNREACHABLE.
    """
    if not topic_ids(bootstrap, [topic]):
        return False
    client = admin(bootstrap)
    policy = _policy(client, topic)
    if policy != _DELETE:
        _set_policy(client, topic, _DELETE)
    try:
        _delete(client, topic, OFFSET_END if before is None else before)
    finally:
        if policy != _DELETE:
            _set_policy(client, topic, policy)
    return True


def _policy(client: AdminClient, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    answers: dict[Any, Any] = client.describe_configs([resource], request_timeout=SECONDS)
    return str(_result(answers[resource], f"describing topic {topic}")[_POLICY].value)


def _set_policy(client: AdminClient, topic: str, policy: str) -> None:
    entry = ConfigEntry(_POLICY, policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    answers: dict[Any, Any] = client.incremental_alter_configs([resource], request_timeout=SECONDS)
    _result(answers[resource], f"altering topic {topic}")


def _delete(client: AdminClient, topic: str, offset: int) -> None:
    """Again for a while: the broker may not have noticed the policy yet."""
    attempts = Retrying(
        stop=stop_after_delay(_SETTLE_SECONDS),
        wait=wait_fixed(0.3),
        retry=retry_if_exception_type(CdcError),
        reraise=True,
    )
    attempts(_delete_once, client, TopicPartition(topic, 0, offset))


def _delete_once(client: AdminClient, upto: TopicPartition) -> None:
    answers: dict[Any, Any] = client.delete_records([upto], request_timeout=SECONDS)
    for future in answers.values():
        _result(future, f"emptying topic {upto.topic}")


def _result(future: Any, doing: str) -> Any:  # noqa: ANN401 - what the client answers
    try:
        return future.result()
    except KafkaException as error:
        raise CdcError(
            ErrorKind.UNREACHABLE, f"{doing} failed", detail=str(error.args[0].str())
        ) from None
