"""An installation whose source is behind a proxy, and whose disks are small enough to be filled."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.faults.bank.armed import JOB, Armed, job_of
from tests.faults.bank.bank import SQL
from tests.faults.bank.marts import define
from tests.faults.bank.walk import Walk
from tests.faults.conftest import PATTERNS
from tests.servers.fixtures import started
from tests.servers.proxy import Proxy, proxied
from tests.small_disk import small_disk

DISKS: Final = {"lake": "1g", "kafka": "1g"}
"""The parts with disks of their own; tests/stack fills the source's and the job's."""
ALL: Final = "all"
Pair = tuple[str, str]
"""A client, or all of them, and a server."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A running installation, the walk over its ledger, and what can disturb it."""

    bank: Armed
    walk: Walk
    proxies: Mapping[Pair, Proxy]
    """The proxies between the two of each pair; the test itself bypasses them."""

    def disk(self, name: str) -> Path:
        """Return where a disk of ``DISKS`` is mounted."""
        return _disks(self.bank.folder)[name]

    def before(self, server: str, client: str = ALL) -> list[Proxy]:
        """Return the proxies before a server, for one of its clients or for all."""
        pairs = [pair for pair in self.proxies if pair[1] == server and client in {ALL, pair[0]}]
        assert pairs, f"no proxy between {client} and {server}"
        return [self.proxies[pair] for pair in pairs]


def _disks(folder: Path) -> dict[str, Path]:
    return {"lake": folder / "lake", "kafka": folder / ".wal2lake" / "data" / "kafka"}


@contextmanager
def staged(
    request: pytest.FixtureRequest,
    root: Path,
    disks: Mapping[str, str] = DISKS,
    job: Mapping[str, float] = JOB,
) -> Iterator[Scene]:
    """Yield a running installation with its first snapshot in the lake; nothing runs afterwards.

    ``disks`` are the sizes of ``DISKS``, as mount(8) takes them; ``job`` is the section of the
    configuration.
    """
    with ExitStack() as stack:
        servers = stack.enter_context(started(request, root / "servers", ("postgres",)))
        postgres = servers["postgres"]
        proxy = stack.enter_context(in_front_of(postgres.address))
        url = by_way_of(proxy, postgres.address)
        asked = job_of(request.config, job)
        bank = Armed.of(root / "lakehouse", postgres, PATTERNS, through=url, job=asked)
        for name, disk in _disks(bank.folder).items():
            stack.enter_context(small_disk(disk, disks[name]))
        stack.enter_context(brought_up(bank))
        yield Scene(bank=bank, walk=Walk(bank), proxies={(ALL, "source"): proxy})


@contextmanager
def brought_up(bank: Armed) -> Iterator[None]:
    """Create the bank's tables and bring the installation up; take it down after the block."""
    bank.execute(SQL)
    define(bank)
    try:
        bank.run("up", "--detach")
        bank.sync()
        yield
    finally:
        bank.run("down")
        assert bank.processes() == []


@contextmanager
def in_front_of(address: str) -> Iterator[Proxy]:
    """Run a proxy to the server of a URL or of ``host:port``."""
    url = urlsplit(address if "://" in address else f"//{address}")
    assert url.hostname is not None
    assert url.port is not None
    with proxied(url.hostname, url.port) as proxy:
        yield proxy


def by_way_of(proxy: Proxy, address: str) -> str:
    """Return the address with the proxy's host and port."""
    host, port = proxy.address
    if "://" not in address:
        return f"{host}:{port}"
    url = urlsplit(address)
    user, at, _ = url.netloc.rpartition("@")
    return urlunsplit(url._replace(netloc=f"{user}{at}{host}:{port}"))
