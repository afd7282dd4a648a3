"""Record events of every type for tests without servers, half of the rows by snapshot.

``python -m tests.kinds.record`` rewrites events/kinds.json.
"""

import base64
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from cdc.capture.bootstrap import establish, placeholder
from cdc.kafka.broker import Broker
from cdc.kafka.offsets import end_offsets
from cdc.kafka.registry_client import RegistryClient
from cdc.state import pipeline as pipelines
from cdc.state.endpoints import Endpoints
from cdc.waiting import until
from tests.events.recorded import FOLDER
from tests.kinds.columns import SCHEMA, SETUP, TABLES
from tests.kinds.pipeline import Pipeline, configured, random_rows
from tests.servers.process import servers

ROWS = 12
SERVERS = ("postgres", "kafka", "registry", "connect")


def main() -> None:
    """Start the servers, record the events and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        makers = servers(Path(folder))
        running = {name: makers[name]() for name in SERVERS}
        try:
            for server in running.values():
                server.start()
            endpoints = Endpoints(
                source_url=running["postgres"].address,
                kafka=Broker(running["kafka"].address),
                registry=running["registry"].address,
                connect=running["connect"].address,
            )
            recording = recorded(Path(folder), endpoints)
        finally:
            for server in reversed(running.values()):
                server.kill()
    text = json.dumps(recording, indent=1, ensure_ascii=False, sort_keys=True)
    (FOLDER / "kinds.json").write_text(text + "\n")
    sys.stdout.write(f"{len(recording['records'])} events\n")


def recorded(folder: Path, endpoints: Endpoints) -> dict[str, Any]:
    """Run the connector over the tables; return records, schemas and the expected rows."""
    given = pipelines.Pipeline(configured(folder, endpoints, {}), endpoints)
    pipeline = Pipeline(given=given)
    pipeline.execute(SETUP)
    for table, kinds in TABLES.items():
        pipeline.create(table, kinds)
        pipeline.insert(table, random_rows(kinds, ROWS // 2))
    establish(given)
    topics = {table: f"{given.name}.{SCHEMA}.{table}" for table in TABLES}
    until(lambda: len(_records(endpoints, topics)) == ROWS // 2 * len(TABLES), 60, "no snapshot")
    for table, kinds in TABLES.items():
        pipeline.insert(table, random_rows(kinds, ROWS // 2))
    until(lambda: len(_records(endpoints, topics)) == ROWS * len(TABLES), 60, "no stream")
    records = _records(endpoints, topics)
    return {
        "placeholder": placeholder(given),
        "schemas": _schemas(endpoints, records),
        "records": records,
        "expected": {
            table: [{"id": number, **row} for number, row in pipeline.source(table, kinds).items()]
            for table, kinds in TABLES.items()
        },
    }


def _records(endpoints: Endpoints, topics: Mapping[str, str]) -> list[dict[str, Any]]:
    ends = end_offsets(endpoints.kafka, list(topics.values()))
    return [
        record for topic in sorted(ends) if ends[topic] for record in _read_topic(endpoints, topic)
    ]


def _read_topic(endpoints: Endpoints, topic: str) -> list[dict[str, Any]]:
    settings = {
        "bootstrap.servers": endpoints.kafka.bootstrap,
        "group.id": "record",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    records = []
    try:
        while (message := consumer.poll(20)) is not None and message.error() is None:
            records.append(
                {
                    "topic": topic,
                    "partition": 0,
                    "offset": message.offset(),
                    "timestamp": message.timestamp()[1],
                    "key": _encoded(message.key()),
                    "value": _encoded(message.value()),
                    "headers": [],
                }
            )
    finally:
        consumer.close()
    return records


def _encoded(data: Any) -> str | None:  # noqa: ANN401 - bytes, whatever the stubs say
    return None if data is None else base64.b64encode(bytes(data)).decode()


def _schemas(endpoints: Endpoints, records: list[dict[str, Any]]) -> dict[str, str]:
    raw = (base64.b64decode(record[part]) for record in records for part in ("key", "value"))
    ids = sorted({int.from_bytes(data[1:5]) for data in raw})
    schemas = RegistryClient(endpoints.registry).schemas(ids)
    return {str(number): text for number, text in schemas.items()}


if __name__ == "__main__":
    main()
