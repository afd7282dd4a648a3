"""An installation whose source is behind a proxy, and whose disks are small enough to be filled."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.faults.armed import Armed
from tests.faults.bank import SQL
from tests.faults.conftest import PATTERNS
from tests.faults.walk import Walk
from tests.servers.fixtures import started
from tests.servers.proxy import Proxy, proxied
from tests.small_disk import small_disk

DISKS: Final = {"lake": "1g", "kafka": "1g"}
"""What has a disk of its own; the source's and the job's are tried in tests/stack."""


@dataclass(frozen=True, slots=True)
class Scene:
    bank: Armed
    proxy: Proxy  # between the source and all that is not the test itself
    walk: Walk

    def disk(self, name: str) -> Path:
        return _disks(self.bank.folder)[name]


def _disks(folder: Path) -> dict[str, Path]:
    return {"lake": folder / "lake", "kafka": folder / ".wal2lake" / "data" / "kafka"}


@contextmanager
def staged(request: pytest.FixtureRequest, root: Path) -> Iterator[Scene]:
    """Up, with the first snapshot in the lake; nothing is left running afterwards."""
    with ExitStack() as stack:
        servers = stack.enter_context(started(request, root / "servers", ("postgres",)))
        postgres = servers["postgres"]
        url = urlsplit(postgres.address)
        assert url.hostname is not None
        assert url.port is not None
        proxy = stack.enter_context(proxied(url.hostname, url.port))
        host, port = proxy.address
        place = f"{url.netloc.rpartition('@')[0]}@{host}:{port}"
        through = urlunsplit(url._replace(netloc=place))
        bank = Armed.of(root / "lakehouse", postgres, PATTERNS, through=through)
        for name, disk in _disks(bank.folder).items():
            stack.enter_context(small_disk(disk, DISKS[name]))
        bank.execute(SQL)
        stack.callback(lambda: _ended(bank))
        bank.run("up", "--detach")
        bank.sync()
        yield Scene(bank=bank, proxy=proxy, walk=Walk(bank))


def _ended(bank: Armed) -> None:
    bank.run("down")
    assert bank.processes() == []
