"""What does not fit at one's own servers is refused by name: a login, a certificate, a right."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.security.conftest import OwnServers
from tests.security.own_servers import HOST, KAFKA_USER, REGISTRY_USER, STRANGER
from tests.security.secured import Secured, configuration, has

pytestmark = pytest.mark.e2e

REFUSED: Final[dict[str, tuple[str, dict[str, str], str, str]]] = {
    "the source's password": (
        "source",
        {"password": "wrong", "password_file": ""},
        "refuses the connection",
        "password authentication failed",
    ),
    "the source's CA": (
        "source",
        {"url": "ours.crt>other.crt"},
        "presents a certificate that is not trusted",
        "certificate verify failed",
    ),
    "the source's host name": (
        "source",
        {"url": f"@{HOST}>@127.0.0.1"},
        "presents a certificate for another host name",
        "",
    ),
    "no TLS to the source": (
        "source",
        {"url": "sslmode=verify-full>sslmode=disable"},
        "refuses the connection",
        "no encryption",
    ),
    "the worker's password": (
        "connect",
        {"password": "wrong", "password_file": ""},
        "Kafka Connect at https://localhost",
        "refuses our credentials",
    ),
    "the worker's CA": (
        "connect",
        {"ca_file": "ours.crt>other.crt"},
        "presents a certificate that is not trusted",
        "unable to get local issuer certificate",
    ),
    "the registry's user": (
        "registry",
        {"user": f"{REGISTRY_USER}>stranger"},
        "the schema registry at https://localhost",
        "refuses our credentials",
    ),
    "the registry's host name": (
        "registry",
        {"url": f"{HOST}>127.0.0.1"},
        "presents a certificate that is not trusted",
        "IP address mismatch",
    ),
    "the user at Kafka": (
        "kafka",
        {"user": f"{KAFKA_USER}>stranger"},
        "Kafka at localhost",
        "refuses our credentials",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_setting_is_refused_by_name(
    own_servers: OwnServers, tmp_path: Path, case: str
) -> None:
    section, changes, message, detail = REFUSED[case]
    written = configuration(own_servers, tmp_path)
    for key, change in changes.items():
        before, arrow, after = change.partition(">")
        old = str(written[section].get(key, ""))
        written[section][key] = old.replace(before, after) if arrow else change
    written[section] = {key: text for key, text in written[section].items() if text}

    errors = _errors_of_check(own_servers, tmp_path, written)

    assert any(message in text and detail in text for text in errors), errors


def test_a_user_without_rights_at_kafka_is_told_so(own_servers: OwnServers, tmp_path: Path) -> None:
    passwords = own_servers.kafka.server.passwords
    strangers = replace(own_servers, secrets=own_servers.secrets | {"kafka": passwords[STRANGER]})
    written = configuration(strangers, tmp_path)
    written["kafka"]["user"] = STRANGER

    errors = _errors_of_check(strangers, tmp_path, written)

    refused = "describing topic wal2lake.wal2lake.heartbeat is not permitted"
    assert any(refused in text for text in errors), errors


def _errors_of_check(own: OwnServers, folder: Path, written: dict[str, Any]) -> list[str]:
    """Return the errors that ``check`` finds with this configuration; none has a secret in it."""
    (folder / "wal2lake.yaml").write_text(yaml.safe_dump(written))
    installed = Secured(folder=folder, servers={}, own=own, written=written)

    done = installed.done("check", "--json")

    assert done.returncode != 0
    assert not has(done.stdout + done.stderr, list(own.secrets.values()))
    found = json.loads(done.stdout)
    return [finding["message"] for finding in found if finding["level"] == "error"]
