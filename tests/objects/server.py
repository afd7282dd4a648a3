"""Starts moto, an object store in memory, with a proxy before it that makes it fail."""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from threading import Thread
from typing import Final
from urllib.error import URLError

from tests.objects.faults import Faults, FaultyProxy
from tests.servers.container import free_port
from tests.waiting import until

KEY_ID: Final = "AKIACANARYCANARYCANA"
SECRET: Final = "canary/secret+0123456789abcdefghijklmnop"
TOKEN: Final = "canary-session-token-0123456789"
_NUMBERS: Final = count()


@dataclass(frozen=True, slots=True)
class ObjectServer:
    """A running store."""

    url: str  # of the proxy
    port: int  # of moto itself
    faults: Faults

    def environment(self) -> dict[str, str]:
        """Return the variables by which a program finds the store."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": TOKEN,
        }

    def lake(self) -> str:
        """Return the path of a lake in a new bucket."""
        bucket = f"lake-{os.getpid()}-{next(_NUMBERS)}"
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/{bucket}", method="PUT")
        with urllib.request.urlopen(request):
            return f"s3a://{bucket}/in/a/prefix"


@contextmanager
def object_server() -> Iterator[ObjectServer]:
    """Run a store for the length of the block."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as moto:
        try:
            until(lambda: _answers(port))
            with FaultyProxy(port) as proxy:
                Thread(target=proxy.serve_forever, name="faults", daemon=True).start()
                yield ObjectServer(proxy.url, port, proxy.faults)
                proxy.shutdown()
        finally:
            moto.kill()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/"):
            return True
    except (URLError, ConnectionError):
        return False
