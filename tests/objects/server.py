"""Starts moto, an object store in memory, with a proxy before it that makes it fail."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Final
from urllib.error import URLError

from tests.objects.faults import CONTROL, HEALTHY, Fault, Plan
from tests.servers.container import free_port
from tests.waiting import until

KEY_ID: Final = "AKIACANARYCANARYCANA"
SECRET: Final = "canary/secret+0123456789abcdefghijklmnop"
TOKEN: Final = "canary-session-token-0123456789"
_NUMBERS: Final = count()


@dataclass(slots=True)
class Faults:
    """Sets the faults of a running proxy, and tells which were met."""

    url: str
    _before: int = 0

    def follow(self, plan: Plan) -> None:
        """Have requests fail by this plan from now on."""
        self._ask("PUT", json.dumps(asdict(plan)).encode())

    def heal(self) -> None:
        """Have no more faults."""
        self.follow(HEALTHY)

    def forget(self) -> None:
        """Forget which faults were met."""
        self._before += len(self.met)

    @property
    def asked(self) -> int:
        """How many requests there were since ``follow``."""
        return int(json.loads(self._ask("GET", None))[1])

    @property
    def met(self) -> list[Fault]:
        """The faults that requests have met since ``forget``."""
        return [Fault(value) for value in json.loads(self._ask("GET", None))[0][self._before :]]

    def _ask(self, method: str, body: bytes | None) -> bytes:
        request = urllib.request.Request(self.url + CONTROL, body, method=method)
        with urllib.request.urlopen(request) as answer:
            content: bytes = answer.read()
        return content


@dataclass(frozen=True, slots=True)
class ObjectServer:
    """Tells how to reach a running store, and makes lakes in it."""

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
    port, listen = free_port(), free_port()
    moto = ["-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    proxy = ["-m", "tests.objects.faults", str(port), str(listen)]
    url = f"http://127.0.0.1:{listen}"
    with _running(moto), _running(proxy):
        until(lambda: _answers(f"{url}/moto-api/"))
        yield ObjectServer(url, port, Faults(url))


@contextmanager
def _running(arguments: list[str]) -> Iterator[None]:
    quiet, root = subprocess.DEVNULL, Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=quiet, stderr=quiet, cwd=root
    ) as process:
        try:
            yield
        finally:
            process.kill()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url):
            return True
    except (URLError, ConnectionError):
        return False
