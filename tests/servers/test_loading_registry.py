"""A restarted registry reads its schemas back from its topic, and answers while it does."""

from dataclasses import replace
from typing import Final

import httpx
import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.registry_client import RegistryClient
from cdc.stack.process.process import Command, Process
from tests.servers.fixtures import Makers
from tests.servers.process import ProcessServer
from tests.stopped import stopped
from tests.waiting import until

pytestmark = pytest.mark.integration

API_TIMEOUT: Final = "apicurio.kafka.common.default.api.timeout.ms"
API_SECONDS: Final = 5
SCHEMA = '{"type":"record","name":"kept","fields":[]}'


def test_a_schema_that_a_registry_has_not_read_back_yet_is_not_unknown(servers: Makers) -> None:
    kafka, registry = servers["kafka"](), servers["registry"]()
    if not (isinstance(kafka, ProcessServer) and isinstance(registry, ProcessServer)):
        pytest.skip("needs a process of the broker to stop while the registry starts")
    kafka.start()
    url = registry.start()
    schema_id = _register(url)

    registry.kill()
    assert kafka.process is not None
    with stopped(kafka.process.pid):
        registry.process = Process("registry", _impatient(registry), registry.state)
        until(lambda: _says(url, schema_id) == httpx.codes.NOT_FOUND)
        with pytest.raises(CdcError) as caught:
            RegistryClient(url).schema(schema_id)

    assert caught.value.kind is ErrorKind.UNREACHABLE
    # It found no broker at its start and never gets ready: the supervisor would restart it.
    registry.kill()
    registry.start()
    assert RegistryClient(url).schema(schema_id) == SCHEMA
    assert RegistryClient(url).schema(schema_id + 1) is None


def _impatient(registry: ProcessServer) -> Command:
    """Return its command, with seconds instead of a minute in which it looks for its broker."""
    command = registry.embedded.command()
    java, *arguments = command.arguments
    return replace(command, arguments=(java, f"-D{API_TIMEOUT}={API_SECONDS * 1000}", *arguments))


def _register(url: str) -> int:
    path = f"{url}/apis/ccompat/v7/subjects/kept/versions"
    response = httpx.post(path, json={"schema": SCHEMA}).raise_for_status()
    return int(response.json()["id"])


def _says(url: str, schema_id: int) -> int | None:
    """Return the registry's own status code for a schema, or None if it does not answer."""
    try:
        return httpx.get(f"{url}/apis/ccompat/v7/schemas/ids/{schema_id}").status_code
    except httpx.TransportError:
        return None
