"""A request that our user has no right to is told apart from a broker that is away."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from cdc.errors import ErrorKind
from cdc.kafka.broker import Broker
from cdc.kafka.refusal import failed
from cdc.kafka.topics import unreachable

RIGHTS = [
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
]
NOBODY = Broker("127.0.0.1:1")


@pytest.mark.parametrize("code", RIGHTS)
def test_a_missing_right_is_named_with_what_to_do(code: int) -> None:
    error = KafkaException(KafkaError(code))

    for made in (failed("describing topic t", error), unreachable(NOBODY, error)):
        assert made.kind is ErrorKind.CONFIG
        assert made.message.endswith("is not permitted")
        assert "authorization failed" in (made.detail or "")
        assert "docs/how-to/own-servers.md" in made.remedy


def test_any_other_failure_is_a_broker_that_does_not_do_it() -> None:
    error = KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))

    assert failed("describing topic t", error).kind is ErrorKind.UNREACHABLE
    assert failed("describing topic t", error).message == "describing topic t failed"
    assert unreachable(NOBODY, error).kind is ErrorKind.UNREACHABLE
