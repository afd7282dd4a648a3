"""Sets up the embedded schema registry, which keeps its schemas in a topic of the same Kafka."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tenacity import Retrying, retry_if_exception, stop_after_delay

from cdc import http_client
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.lock_file import REGISTRY, set_dir
from cdc.stack.process.process import Command
from cdc.stack.servers.jvm import java_command
from cdc.stack.servers.server import LOOPBACK, properties_text
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir

_HEAP = "320m"
_REQUEST_SECONDS: Final = 30
_CONTROLLER_SECONDS: Final = 120
_TIMED_OUT: Final = KafkaError._TIMED_OUT  # noqa: SLF001 - librdkafka's own, and documented


@dataclass(frozen=True, slots=True)
class RegistryServer:
    """Prepares the embedded Apicurio registry; ``kafka`` is the broker that stores its schemas."""

    state: StateDir
    port: int
    kafka: Broker
    installation: str
    replication: int = 1
    name: str = "registry"

    @property
    def url(self) -> str:
        """Return the URL of the registry."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def _home(self) -> Path:
        return self.state.data(self.name)

    def prepare(self) -> None:
        """Create the registry's folder and topics; raises UNREACHABLE if Kafka refuses."""
        self._home.mkdir(exist_ok=True)
        write_private(self._secrets, properties_text(self._security()))
        create_topics(self.kafka, self._topics(), self.replication)

    def _topics(self) -> dict[str, dict[str, str]]:
        """Return the registry's topics with their settings.

        The journal alone holds the schemas, so it is kept whole and for ever. The registry also
        announces every change in ``events`` and waits for the broker's answer, so that topic must
        exist too, though nobody here reads it.
        """
        prefix = f"{self.installation}-registry"
        for_ever = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
        briefly = {"cleanup.policy": "delete", "retention.ms": "3600000"}
        return {
            f"{prefix}-journal": for_ever,
            f"{prefix}-snapshots": for_ever,
            f"{prefix}-events": briefly,
        }

    @property
    def _secrets(self) -> Path:
        return self.state.secrets / "registry.properties"

    def _security(self) -> dict[str, str]:
        """Return how to reach Kafka; in a file, because anyone can read a command line."""
        return {
            f"apicurio.kafka.common.{name}": text
            for name, text in self.kafka.java_settings().items()
        }

    def command(self) -> Command:
        """Return the command that starts the registry."""
        root = set_dir(REGISTRY)
        (runner,) = root.glob("apicurio-registry-app-*-runner.jar")
        archive = class_archive.archive(self.name, [runner])
        arguments = java_command(
            _HEAP,
            class_path=[runner],
            archive=archive,
            main="io.quarkus.runner.GeneratedMain",
            properties=self.properties(),
        )
        return Command(arguments=arguments, directory=self._home, archive=archive)

    def properties(self) -> dict[str, str]:
        """Return the Java properties that configure the registry."""
        journal, snapshots, events = self._topics()
        return {
            "quarkus.config.locations": str(self._secrets),
            "quarkus.http.host": LOOPBACK,
            "quarkus.http.port": str(self.port),
            "quarkus.http.access-log.enabled": "false",
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": self.kafka.bootstrap,
            "apicurio.kafkasql.topic": journal,
            "apicurio.kafkasql.snapshots.topic": snapshots,
            "apicurio.events.kafka.topic": events,
            "apicurio.kafkasql.topic.auto-create": "false",
            # Snapshots of the journal are files: one more place where schemas could get lost.
            "apicurio.kafkasql.snapshot.every.seconds": "off",
            "apicurio.kafkasql.consumer.poll.timeout": "100",
            # Connections to the in-memory copy of the journal: sized for a laptop.
            "apicurio.datasource.jdbc.initial-size": "2",
            "apicurio.datasource.jdbc.min-size": "2",
            "apicurio.datasource.jdbc.max-size": "20",
            "apicurio.storage.snapshot.location": str(self._home),
        }

    def is_ready(self) -> bool:
        """Return whether the registry is ready and answers."""
        return is_answering(self.url)


def is_answering(url: str) -> bool:
    """Return whether the registry at ``url`` is ready and can list its subjects."""
    try:
        ready = http_client.get(url, "/health/ready", timeout=3)
        subjects = http_client.get(url, "/apis/ccompat/v7/subjects", timeout=3)
    except httpx.HTTPError:
        return False
    return ready.status_code == httpx.codes.OK and subjects.status_code == httpx.codes.OK


def create_topics(kafka: Broker, topics: Mapping[str, dict[str, str]], replication: int) -> None:
    """Create the topics that do not exist, with one partition each to keep one order.

    A broker that was suspended has no controller for a while: that is waited for.

    Raises UNREACHABLE if the broker does not create them.
    """
    new_topics = [NewTopic(name, 1, replication, config=config) for name, config in topics.items()]
    attempts = Retrying(
        stop=stop_after_delay(_CONTROLLER_SECONDS), retry=retry_if_exception(_is_late), reraise=True
    )
    try:
        attempts(_create, kafka, new_topics)
    except KafkaException as error:
        raise _no_topics(kafka, error.args[0]) from None


def _create(kafka: Broker, topics: list[NewTopic]) -> None:
    client = AdminClient(kafka.client_settings())  # must outlive its futures
    for future in client.create_topics(topics, request_timeout=_REQUEST_SECONDS).values():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _is_late(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() == _TIMED_OUT


def _no_topics(kafka: Broker, reason: KafkaError) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"kafka at {kafka} did not create the registry's topics",
        detail=reason.str(),
        remedy="check the broker's log: it must be up and allow topics to be created",
    )
