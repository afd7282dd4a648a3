"""A server of a test that is started again finds its port free."""

from pathlib import Path

from cdc.stack.servers.ports import _CANDIDATES
from tests.servers.container import free_port


def test_no_outgoing_connection_and_no_embedded_server_takes_a_port_of_a_test() -> None:
    found = [free_port() for _ in range(50)]

    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(found) < min(lowest, _CANDIDATES.start)
    assert len(set(found)) == len(found)
