"""Sets up the embedded Kafka, a single node that is both broker and controller."""

import base64
import contextlib
import logging
import socket
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.class_archive import ClassArchive
from cdc.stack.artifacts.lock_file import KAFKA, jars
from cdc.stack.process.process import Command
from cdc.stack.servers.jvm import java_command, write_log4j
from cdc.stack.servers.server import LOOPBACK, write_properties
from cdc.state.directory import StateDir

LARGEST_MESSAGE = 64 * 1024 * 1024
"""A row with large values makes one large message; Kafka's default limit is 1 MiB."""

_HEAP = "384m"
_TRANSACTION_SECONDS = 5
_LOG_LEVELS = {"kafka.server.KafkaRaftServer": "info"}


@dataclass(frozen=True, slots=True)
class KafkaServer:
    """Prepares the embedded Kafka node; ``port`` serves clients, ``controller_port`` the quorum."""

    state: StateDir
    port: int
    controller_port: int
    name: str = "kafka"

    @property
    def broker(self) -> Broker:
        """Return the address for clients."""
        return Broker(f"{LOOPBACK}:{self.port}")

    @property
    def _home(self) -> Path:
        return self.state.data(self.name)

    @property
    def _properties(self) -> Path:
        return self._home / "server.properties"

    def prepare(self) -> None:
        """Write the configuration, and format the storage before the first start."""
        self._home.mkdir(exist_ok=True)
        write_properties(self._properties, self._settings())
        if not (self._home / "log" / "meta.properties").exists():
            self._format()

    def _settings(self) -> dict[str, str | int]:
        controller = f"{LOOPBACK}:{self.controller_port}"
        single = dict.fromkeys(_SINGLE_NODE, 1)
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.broker},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.broker}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self._home / "log"),
            **single,
            **_BROKER,
        }

    def _format(self) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # A single argument: an id may begin with a hyphen and would be read as an option.
        arguments = ("format", f"--cluster-id={cluster}", "-c", str(self._properties))
        archive = class_archive.existing(self.name, jars(KAFKA))
        command = self._java("kafka.tools.StorageTool", arguments, archive)
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise CdcError(
                ErrorKind.SERVER_FAILED,
                "kafka could not format its storage",
                detail=(result.stderr or result.stdout).strip()[-500:],
            )

    def _java(
        self, main: str, arguments: tuple[str, ...], archive: ClassArchive
    ) -> tuple[str, ...]:
        log4j = write_log4j(self._home / "log4j2.properties", _LOG_LEVELS)
        properties = {"log4j2.configurationFile": str(log4j)}
        return java_command(
            _HEAP,
            class_path=jars(KAFKA),
            main=main,
            archive=archive,
            arguments=arguments,
            properties=properties,
        )

    def command(self) -> Command:
        """Return the command that starts the broker."""
        archive = class_archive.archive(self.name, jars(KAFKA))
        arguments = self._java("kafka.Kafka", (str(self._properties),), archive)
        return Command(arguments=arguments, directory=self._home, archive=archive)

    def is_ready(self) -> bool:
        """Return whether the broker answers clients."""
        return is_answering(self.broker)


def is_answering(broker: Broker) -> bool:
    """Return whether the metadata that ``broker`` serves name at least one broker."""
    if not _is_listening(broker.bootstrap):  # the client would ask again only after a growing pause
        return False
    client = AdminClient(broker.client_settings(), logger=silent_logger())
    try:
        return bool(client.list_topics(timeout=3).brokers)
    except KafkaException:
        return False


def _is_listening(bootstrap: str) -> bool:
    host, _, port = bootstrap.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def end_transaction(broker: Broker, owner: str) -> None:
    """Abort the open transaction of the producer with this ``transactional.id`` and fence it off.

    Does nothing if the broker does not answer.
    """
    settings = {**broker.client_settings(), "transactional.id": owner}
    with contextlib.suppress(KafkaException):
        Producer(settings, logger=silent_logger()).init_transactions(_TRANSACTION_SECONDS)


def silent_logger() -> logging.Logger:
    """Return a logger that discards everything: a broker that is not up yet is expected."""
    logger = logging.getLogger("cdc.stack.kafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


_SINGLE_NODE = (
    "num.partitions",
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "offsets.topic.num.partitions",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.num.partitions",
)

_BROKER: dict[str, str | int] = {
    "auto.create.topics.enable": "false",  # topics are created with their policies, or not at all
    "group.initial.rebalance.delay.ms": 0,
    # After a crash the node can register again only once its old session has expired.
    "broker.session.timeout.ms": 4000,
    "broker.heartbeat.interval.ms": 1000,
    "message.max.bytes": LARGEST_MESSAGE,
    "log.retention.ms": -1,  # nothing is dropped by age unless its topic says so
    # With CreateTime, the broker refuses records of a producer whose clock is an hour ahead.
    "log.message.timestamp.type": "LogAppendTime",
    "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,  # the default is a third of the heap
    "log.cleaner.threads": 1,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "num.recovery.threads.per.data.dir": 2,
}
