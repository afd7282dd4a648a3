"""Set up the embedded Kafka Connect worker with the Debezium connector and the Avro converter."""

from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

import httpx

from cdc import http_client
from cdc.kafka.broker import Broker
from cdc.observe.java_log import configuration
from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.lock_file import CONNECT, CONVERTER, DEBEZIUM, jars, set_dir
from cdc.stack.process.process import Command
from cdc.stack.servers.jvm import java_command
from cdc.stack.servers.kafka import LARGEST_MESSAGE, end_transaction
from cdc.stack.servers.server import LOOPBACK, properties_text
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir
from cdc.state.endpoints import CONNECTOR_SECRETS

_HEAP = "640m"
_USER: Final = "wal2lake"
_SECRET: Final = "connect"  # noqa: S105 - the name of a file
_EXTENSION: Final = "org.apache.kafka.connect.rest.basic.auth.extension"
_LOGIN_MODULE: Final = f"{_EXTENSION}.PropertyFileLoginModule"
_JAAS: Final = Template("""\
KafkaConnect {
  $module required file="$file";
};
""")
_SPEAKING: Final = {
    "org.apache.kafka": "warn",
    "org.apache.kafka.connect": "info",
    **dict.fromkeys(
        (
            "io.debezium.connector.postgresql.PostgresConnectorTask",
            "io.debezium.connector.postgresql.PostgresStreamingChangeEventSource",
            "io.debezium.connector.postgresql.connection.PostgresReplicationConnection",
            "io.debezium.pipeline.ErrorHandler",
            "io.debezium.pipeline.source.AbstractSnapshotChangeEventSource",
            "io.debezium.util.Threads",
        ),
        "info",
    ),
    # Below "warn" these log positions, which in a snapshot started by a signal contain the keys
    # between which it reads.
    "io.debezium.connector.common": "warn",
    "io.debezium.pipeline.ChangeEventSourceCoordinator": "warn",
}
"""The loggers of the worker whose messages are kept. Others quote data: Debezium's converters quote
values, and the snapshot that a signal starts (``pipeline.source.snapshot``) quotes keys."""


@dataclass(frozen=True, slots=True)
class ConnectServer:
    """Prepares the embedded Kafka Connect worker; ``kafka`` is the address of its broker."""

    state: StateDir
    port: int
    kafka: Broker
    installation: str
    replication: int = 1
    name: str = "connect"

    @property
    def url(self) -> str:
        """Return the worker's URL with the credentials, without which it answers nothing."""
        return http_client.with_login(self._listener, _USER, self._password())

    @property
    def _listener(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def _password(self) -> str:
        """Return the installation's password.

        All workers of a group share it: they forward requests with the credentials they got.
        """
        return self.state.secret(_SECRET)

    @property
    def _home(self) -> Path:
        return self.state.data(self.name)

    @property
    def _properties(self) -> Path:
        return self.state.secrets / f"{self.name}.properties"

    def prepare(self) -> None:
        """Write the configuration; end transactions that a killed worker left open."""
        if self._home.exists():
            self._end_transactions()
        self._home.mkdir(exist_ok=True)
        write_private(self._properties, properties_text(self._settings()))
        self._write_secrets()

    def _write_secrets(self) -> None:
        """Write the worker's secrets to files, because anyone can read a command line."""
        if not self._for_connector.exists():
            write_private(self._for_connector, "")  # it must exist
        write_private(self._credentials, f"{_USER}={self._password()}\n")
        file = str(self._credentials).replace("\\", "\\\\").replace('"', '\\"')
        write_private(self._jaas, _JAAS.substitute(module=_LOGIN_MODULE, file=file))

    @property
    def _for_connector(self) -> Path:
        return self.state.secrets / CONNECTOR_SECRETS

    @property
    def _credentials(self) -> Path:
        return self.state.secrets / f"{_SECRET}.credentials"

    @property
    def _jaas(self) -> Path:
        return self.state.secrets / f"{_SECRET}.jaas"

    def _end_transactions(self) -> None:
        """End the transactions that a killed worker left open.

        The next worker reads its offsets only up to the first of them. The broker would end them
        too, but only after a minute.
        """
        for owner in (f"connect-cluster-{self._group}", f"{self._group}-{self.installation}-0"):
            end_transaction(self.kafka, owner)

    @property
    def _group(self) -> str:
        return f"{self.installation}-connect"

    def _settings(self) -> dict[str, str | int]:
        plugins = ",".join(str(set_dir(name)) for name in (DEBEZIUM, CONVERTER))
        return {
            **self._to_kafka(),
            "listeners": self._listener,
            "rest.advertised.host.name": LOOPBACK,
            "plugin.path": plugins,
            # A connector's configuration may refer to this file only, not to other secrets.
            "config.providers.file.param.allowed.paths": str(self._for_connector),
            **self._storage(),
            **WORKER,
        }

    def _to_kafka(self) -> dict[str, str]:
        """Return how the worker reaches Kafka, and how the clients of its connectors do."""
        settings = self.kafka.java_settings()
        return {
            f"{of}{name}": text
            for of in ("", "producer.", "consumer.", "admin.")
            for name, text in settings.items()
        }

    def _storage(self) -> dict[str, str | int]:
        """Return the worker's own topics, which it creates itself with the policies it needs."""
        kinds = {"config": "configs", "offset": "offsets", "status": "status"}
        topics = {f"{kind}.storage.topic": f"{self._group}-{name}" for kind, name in kinds.items()}
        copies = {f"{kind}.storage.replication.factor": self.replication for kind in kinds}
        partitions = {f"{kind}.storage.partitions": 1 for kind in ("offset", "status")}
        return {"group.id": self._group, **topics, **copies, **partitions}

    def command(self) -> Command:
        """Return the command that starts the worker; writes its log4j configuration."""
        log4j = self._home / "log4j2.properties"
        log4j.write_text(configuration(level="warn", speaking=_SPEAKING))
        archive = class_archive.archive(self.name, jars(CONNECT))
        arguments = java_command(
            _HEAP,
            class_path=jars(CONNECT),
            archive=archive,
            main="org.apache.kafka.connect.cli.ConnectDistributed",
            arguments=(str(self._properties),),
            properties={
                "log4j2.configurationFile": str(log4j),
                "java.security.auth.login.config": str(self._jaas),
                # Debezium prints the times inside ranges in the worker's time zone.
                "user.timezone": "UTC",
            },
        )
        return Command(arguments=arguments, directory=self._home, archive=archive)

    def is_ready(self) -> bool:
        """Return whether the worker answers its health check."""
        return is_answering(self.url)


def is_answering(url: str) -> bool:
    """Return whether the worker has joined its group and read its configuration topic."""
    try:
        response = http_client.get(url, "/health", timeout=3)
    except httpx.HTTPError:
        return False
    return response.status_code == httpx.codes.OK


WORKER: Final[dict[str, str | int]] = {
    # Defaults for connectors that name no converter; our connector names its own.
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "rest.extension.classes": f"{_EXTENSION}.BasicAuthSecurityRestExtension",
    "exactly.once.source.support": "enabled",
    "topic.creation.enable": "false",  # topics are created with their policies, or not at all
    "plugin.discovery": "service_load",  # scanning costs ten seconds of every start
    "config.providers": "file",
    "config.providers.file.class": ("org.apache.kafka.common.config.provider.FileConfigProvider"),
    # Our connector sets the sizes of its own producer.
    "connector.client.config.override.policy": "All",
    "producer.max.request.size": LARGEST_MESSAGE,
    "producer.buffer.memory": 2 * LARGEST_MESSAGE,
    "consumer.max.partition.fetch.bytes": LARGEST_MESSAGE,
    "offset.flush.interval.ms": 5000,
    # A connector with a full queue takes four seconds to end. One that the worker stops waiting for
    # reads on beside the next one, and holds the slot.
    "task.shutdown.graceful.timeout.ms": 30_000,
    "scheduled.rebalance.max.delay.ms": 0,  # one worker: no other to wait for
}
"""Settings that do not depend on the installation; the container's worker has the same ones."""
