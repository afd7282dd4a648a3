import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cdc.client.status.lag import lags
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from tests.servers.fixtures import Makers

pytestmark = pytest.mark.integration


def send(bootstrap: str, topic: str, records: int, *, commit: bool = True) -> list[int]:
    """Send records in one transaction, as the connector does, and return their offsets."""
    offsets: list[int] = []
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"test-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(records):
        producer.produce(
            topic, str(number), on_delivery=lambda _, sent: offsets.append(sent.offset() or 0)
        )
    producer.flush(30)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)
    return offsets


def test_only_changes_count_as_lag_and_not_control_records(servers: Makers) -> None:
    bootstrap = servers["kafka"]().start()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in ("a", "b", "c")]).values():
        future.result(30)
    first, last = send(bootstrap, "a", 5)[0], send(bootstrap, "b", 3)[-1]
    send(bootstrap, "b", 2, commit=False)

    assert lags(Broker(bootstrap), {"a": -1, "b": last, "c": -1}) == {
        "a": 6 - first,
        "b": 0,
        "c": 0,
    }
    # One change, followed by the record that ends its transaction.
    (new,) = send(bootstrap, "b", 1)
    found = lags(Broker(bootstrap), {"a": first + 4, "b": last, "c": -1})
    assert found == {"a": 0, "b": 2, "c": 0}
    assert lags(Broker(bootstrap), {"b": new}) == {"b": 0}


def test_a_missing_broker_is_reported() -> None:
    with pytest.raises(CdcError) as caught:
        lags(Broker("127.0.0.1:1"), {"a": 1})
    assert caught.value.kind is ErrorKind.UNREACHABLE
