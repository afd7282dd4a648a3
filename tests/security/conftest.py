"""Provide one authority, and servers whose certificates it has signed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pytest

from cdc.kafka.broker import Broker
from cdc.stack.servers.postgres import PostgresServer
from cdc.state.directory import StateDir
from tests.security.grants import grant
from tests.security.own_servers import (
    HOST,
    KAFKA_USER,
    PLAIN_USER,
    SERVERS_USER,
    STRANGER,
    SecureConnect,
    SecureKafka,
    SecureRegistry,
    keep_secret,
    secure_postgres,
)
from tests.servers.container import free_port
from tests.servers.process import ProcessServer
from tests.source.authority import Authority, authority


def canary(name: str) -> str:
    """Return a password that is found wherever it is written."""
    return f"canary-{name}-{uuid4().hex}"


@dataclass(frozen=True, kw_only=True)
class Trust:
    """Holds an authority, one that nobody trusts, and certificates of ``localhost``."""

    ours: Authority
    other: Authority

    @property
    def server(self) -> Path:
        """Return the servers' certificate."""
        return self.ours.folder / "server.crt"

    @property
    def expired(self) -> Path:
        """Return a certificate that was valid until yesterday."""
        return self.ours.folder / "expired.crt"

    @property
    def client(self) -> Path:
        """Return a client's certificate."""
        return self.ours.folder / "client.crt"


@dataclass(frozen=True, kw_only=True)
class Brokers:
    """Holds the running Kafka, as clients with different logins see it."""

    server: SecureKafka
    pipeline: Broker
    scram: Broker
    plain: Broker
    mutual: Broker


@pytest.fixture(scope="package")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    folder = tmp_path_factory.mktemp("authorities")
    ours, other = authority(folder, "ours"), authority(folder, "other")
    names = f"DNS:{HOST}"
    ours.signed("server", alternative=names)
    ours.signed("expired", alternative=names, days=-1)
    ours.signed("client")
    return Trust(ours=ours, other=other)


@pytest.fixture(scope="package")
def servers_state(tmp_path_factory: pytest.TempPathFactory) -> StateDir:
    """Return the directory of the servers, which is not the pipeline's."""
    state = StateDir(tmp_path_factory.mktemp("servers"))
    state.create()
    return state


@pytest.fixture(scope="package")
def kafka(trust: Trust, servers_state: StateDir) -> Iterator[Brokers]:
    passwords = {
        "broker": canary("broker"),
        KAFKA_USER: canary("kafka"),
        SERVERS_USER: canary("servers"),
        STRANGER: canary("stranger"),
        # What the reader of JAAS and Kafka's config providers would change.
        PLAIN_USER: rf'${{env:HOME}}"\{canary("plain")}',
    }
    made = SecureKafka(
        state=servers_state,
        port=free_port(),
        controller_port=free_port(),
        mutual_port=free_port(),
        expired_port=free_port(),
        certificate=trust.server,
        expired=trust.expired,
        ca=trust.ours.certificate,
        passwords=passwords,
    )
    process = ProcessServer(embedded=made, address=made.broker.bootstrap, state=servers_state)
    scram = replace(made.broker, user=SERVERS_USER, password=passwords[SERVERS_USER])
    try:
        process.start()
        grant(made.broker, KAFKA_USER, "wal2lake")
        yield Brokers(
            server=made,
            pipeline=replace(made.broker, user=KAFKA_USER, password=passwords[KAFKA_USER]),
            scram=scram,
            plain=replace(
                scram, user=PLAIN_USER, password=passwords[PLAIN_USER], mechanism="PLAIN"
            ),
            mutual=Broker(
                f"{HOST}:{made.mutual_port}",
                tls=True,
                ca_file=trust.ours.certificate,
                certificate_file=trust.client,
                key_file=trust.client.with_suffix(".key"),
            ),
        )
    finally:
        process.kill()


@dataclass(frozen=True, kw_only=True)
class OwnServers:
    """Holds all servers, running, and the pipeline's password at each."""

    state: StateDir
    trust: Trust
    kafka: Brokers
    postgres: PostgresServer
    source_url: str  # of a role that is no superuser, without its password
    connect: SecureConnect
    registry: SecureRegistry
    secrets: dict[str, str]  # by section of the configuration


@pytest.fixture(scope="package")
def own_servers(trust: Trust, servers_state: StateDir, kafka: Brokers) -> Iterator[OwnServers]:
    secrets = {name: canary(name) for name in ("source", "connect", "registry")}
    secrets["kafka"] = kafka.pipeline.password
    keep_secret(servers_state.secrets, "connect", secrets["connect"])
    certificate, ca = trust.server, trust.ours.certificate
    postgres = PostgresServer(servers_state, free_port())
    registry = SecureRegistry(
        servers_state,
        free_port(),
        kafka.scram,
        "own",
        password=secrets["registry"],
        certificate=certificate,
        ca=ca,
    )
    connect = SecureConnect(
        servers_state, free_port(), kafka.scram, "own", certificate=certificate, ca=ca
    )
    processes = [
        ProcessServer(embedded=server, address="", state=servers_state)
        for server in (postgres, registry, connect)
    ]
    try:
        for process in processes:
            process.start()
        yield OwnServers(
            state=servers_state,
            trust=trust,
            kafka=kafka,
            postgres=postgres,
            source_url=secure_postgres(postgres, trust.ours, trust.server, secrets["source"]),
            connect=connect,
            registry=registry,
            secrets=secrets,
        )
    finally:
        for process in reversed(processes):
            process.kill()
