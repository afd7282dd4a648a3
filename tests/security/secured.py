"""Configures an installation on one's own servers, with passwords by file and by environment."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cdc import http_client
from cdc.state.endpoints import REGISTRY_PASSWORD, password_reference, write_connector_secrets
from tests.e2e.installation import Installation
from tests.local_spark import QUICK
from tests.security.conftest import OwnServers
from tests.security.own_servers import CONNECT_USER, HOST, KAFKA_USER, REGISTRY_USER, ROLE


@dataclass(frozen=True, kw_only=True)
class Secured(Installation):
    """Runs an installation whose passwords come by file and by environment."""

    own: OwnServers
    written: dict[str, Any]

    @property
    def source_url(self) -> str:
        """Return the superuser's URL."""
        return self.own.postgres.url

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of commands, with half of the passwords."""
        names = ("kafka", "registry")
        given = {f"WAL2LAKE_{n.upper()}__PASSWORD": self.own.secrets[n] for n in names}
        return super().environment | given


def configuration(own: OwnServers, folder: Path) -> dict[str, Any]:
    """Write the files of passwords; return the configuration that names them."""
    for name in ("source", "connect"):
        (own.trust.ours.folder / f"{name}.password").write_text(own.secrets[name] + "\n")
    registry_url = own.registry.url
    source = own.source_url.replace(f"{ROLE}@", f"{ROLE}:{quote(own.secrets['source'])}@")
    write_connector_secrets(own.state, source, registry_url)
    (folder / "events").mkdir()
    ca, files = str(own.trust.ours.certificate), own.trust.ours.folder
    return {
        "name": "wal2lake",
        "source": {
            "url": own.source_url,
            "password_file": str(files / "source.password"),
            "tables": ["public.customers", "public.orders"],
            "snapshot": "connector",  # so that the topics have every row
        },
        "lake": {"path": "lake"},
        "kafka": {
            "bootstrap_servers": f"{HOST}:{own.kafka.server.port}",
            "user": KAFKA_USER,
            "ca_file": ca,
        },
        "connect": {
            "url": f"https://{HOST}:{own.connect.port}",
            "user": CONNECT_USER,
            "password_file": str(files / "connect.password"),
            "ca_file": ca,
            "source_password": password_reference(own.state.root),
            "registry_password": password_reference(own.state.root, REGISTRY_PASSWORD),
        },
        "registry": {
            "url": http_client.without_login(registry_url),
            "user": REGISTRY_USER,
            "ca_file": ca,
        },
        "spark": {
            "master": "local[2]",
            "driver_memory": "2g",
            "conf": {
                **QUICK,
                "spark.eventLog.enabled": "true",
                "spark.eventLog.compress": "false",
                "spark.sql.debug.maxToStringFields": "1000",
                "spark.eventLog.dir": (folder / "events").as_uri(),
                "spark.sql.ui.explainMode": "extended",
            },
        },
        "job": {"local_events": 0},  # Spark reads and merges all events
    }


def has(text: str, secrets: Iterable[str]) -> bool:
    """Return whether one of the secrets is in the text."""
    return any(secret in text for secret in secrets)
