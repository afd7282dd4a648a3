import os
import socket
from collections.abc import Iterator

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.stack.servers import ports
from cdc.state.directory import StateDir


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    made = socket.create_server(("127.0.0.1", 0))
    yield made
    made.close()


def test_every_server_has_a_port_of_its_own(state: StateDir) -> None:
    chosen = ports.choose(state, {})
    assert set(chosen) == set(ports.NAMES)
    assert len(set(chosen.values())) == len(chosen)


def test_a_server_keeps_its_port_at_the_next_start(state: StateDir) -> None:
    assert ports.choose(state, {}) == ports.choose(state, {})


def test_a_port_that_another_process_took_is_replaced(state: StateDir) -> None:
    before = ports.choose(state, {})
    with socket.create_server(("127.0.0.1", before["kafka"])):
        after = ports.choose(state, {})
    assert after["kafka"] != before["kafka"]
    assert after["connect"] == before["connect"]


def test_a_configured_port_that_is_taken_is_named_with_its_holder(
    state: StateDir, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    with pytest.raises(CdcError) as caught:
        ports.choose(state, {"connect": port})
    error = caught.value
    assert error.kind is ErrorKind.CONFLICT
    assert error.message == f"port {port} of connect is already in use"
    assert str(os.getpid()) in error.detail
    assert "stack.ports.connect" in error.remedy


def test_an_unknown_server_is_a_configuration_error(state: StateDir) -> None:
    with pytest.raises(CdcError) as caught:
        ports.choose(state, {"kafak": 1234})
    assert caught.value.kind is ErrorKind.CONFIG
    assert "kafak" in caught.value.message
