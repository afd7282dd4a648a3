"""Runs a command while it holds a Lease of Kubernetes: ``lease.py --seconds N -- COMMAND...``.

The lease exists already (deploy/chart makes it); LEASE, LEASE_NAMESPACE and LEASE_HOLDER name it
and this pod. It is taken as by Kubernetes's own client-go: if nobody holds it, or if its holder has
not renewed it for as long as it said, by the clock of who waits. Clocks are never compared. Every
change names the version that it changes, so of two that try, one fails.

A command that ends gives the lease back. If it cannot be renewed for two thirds of N seconds, or is
another's, the command and all of its children are killed: whoever waits takes it no sooner than N
seconds after its last renewal. docs/decisions/0042-a-lease.md has the reasons.
"""

import argparse
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Any, Final

import httpx
import psutil

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
LOST: Final = 6  # the exit code of a conflict, as of a second job
ATTEMPTS: Final = 6  # in the length of the lease
REQUEST_SECONDS: Final = 4
LOOK_SECONDS: Final = 0.2
Json = dict[str, Any]


def now() -> float:
    """Return seconds that also pass while the machine sleeps, and that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def say(what: str) -> None:
    """Print a line at once."""
    sys.stderr.write(f"lease: {what}\n")
    sys.stderr.flush()


@dataclass(slots=True)
class Lease:
    """The lease as one candidate sees it; ``seconds`` is for how long it is taken."""

    url: str
    holder: str
    seconds: int
    account: Path = ACCOUNT
    trusted: ssl.SSLContext | bool = True
    _seen: tuple[str, str] = ("", "")
    _seen_at: float = 0.0

    def attempt(self) -> str:
        """Take or renew it; return who holds it now. Raises httpx.HTTPError without an answer."""
        lease = self._request("GET").json()
        spec: Json = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder not in {"", self.holder} and not self._has_expired(spec):
            return str(holder)
        lease["spec"] = self._taken(spec)
        return self.holder if self._write(lease) else ""

    def release(self) -> None:
        """Give it back, so that nobody has to wait until it expires."""
        lease = self._request("GET").json()
        if lease["spec"].pop("holderIdentity", "") == self.holder:
            self._write(lease)

    def _taken(self, spec: Json) -> Json:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        taken = {
            **spec,
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.seconds,
            "renewTime": at,
        }
        if spec.get("holderIdentity") != self.holder:
            taken |= {"acquireTime": at, "leaseTransitions": spec.get("leaseTransitions", 0) + 1}
        return taken

    def _has_expired(self, spec: Json) -> bool:
        """Return whether it has not changed for its length since this process first saw it so."""
        state = (str(spec["holderIdentity"]), str(spec.get("renewTime")))
        if state != self._seen:
            self._seen, self._seen_at = state, now()
        return now() - self._seen_at >= float(spec.get("leaseDurationSeconds", self.seconds))

    def _write(self, lease: Json) -> bool:
        """Write it, and return whether that was done: not if somebody has changed it meanwhile."""
        return self._request("PUT", lease).status_code != HTTPStatus.CONFLICT

    def _request(self, method: str, body: Json | None = None) -> httpx.Response:
        # The token is replaced every hour.
        headers = {"Authorization": f"Bearer {(self.account / 'token').read_text().strip()}"}
        with httpx.Client(verify=self.trusted, timeout=REQUEST_SECONDS, trust_env=False) as client:
            answer = client.request(method, self.url, headers=headers, json=body)
        if answer.status_code != HTTPStatus.CONFLICT:
            answer.raise_for_status()
        return answer


@dataclass(slots=True)
class Keeper:
    """Renews a lease in a thread of its own, which may hang; who looks at it sees that."""

    lease: Lease
    lost: str = ""  # why the command must die
    _renewed_at: float = field(default_factory=now)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Renew it while the block lasts."""
        thread = threading.Thread(target=self._renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join(REQUEST_SECONDS)

    def is_lost(self) -> bool:
        """Return whether the command must not go on."""
        if not self.lost and now() - self._renewed_at > self.lease.seconds * 2 / 3:
            self.lost = "it could not be renewed"
        return bool(self.lost)

    def _renew(self) -> None:
        while not self._over.wait(self.lease.seconds / ATTEMPTS):
            began = now()
            try:
                holder = self.lease.attempt()
            except (httpx.HTTPError, OSError) as error:
                say(f"it is not renewed: {_what(error)}")
                continue
            if holder == self.lease.holder:
                self._renewed_at = began
            elif holder:
                self.lost = f"{holder} holds it"


def _what(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"{error.request.url.path} answers {error.response.status_code}"
    return type(error).__name__


def take(lease: Lease) -> float:
    """Wait until the lease is held; return the time by which that was asked for."""
    told = ""
    while True:
        began = now()
        try:
            holder = lease.attempt()
        except (httpx.HTTPError, OSError) as error:
            holder, waits = "", f"it cannot be taken: {_what(error)}"
        else:
            waits = f"waiting for {holder}, which holds it" if holder else ""
        if holder == lease.holder:
            return began
        if waits != told:
            say(waits or "another was quicker")
            told = waits
        time.sleep(lease.seconds / ATTEMPTS)


def run(lease: Lease, command: list[str]) -> int:
    """Run the command under the lease; return its exit code, or LOST if it had to be killed."""
    keeper = Keeper(lease, _renewed_at=take(lease))
    say(f"{lease.holder} holds it")
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _: signals.append(n))
    with keeper.keeping(), subprocess.Popen(command) as process:
        while _runs(process):
            while signals:
                process.send_signal(signals.pop())
            if keeper.is_lost():
                _kill(process.pid)
                say(f"{keeper.lost}: the job was killed")
                return LOST
    try:
        lease.release()
    except (httpx.HTTPError, OSError) as error:
        say(f"it is not given back, and expires: {_what(error)}")
    # As a shell does for a command that a signal ended.
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _runs(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(LOOK_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _kill(pid: int) -> None:
    """Kill the process and its descendants, each before it could begin another."""
    top = psutil.Process(pid)
    top.suspend()
    for process in [top, *top.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def from_environment(seconds: int, environ: Mapping[str, str], account: Path = ACCOUNT) -> Lease:
    """Return the lease that the chart names to the pod."""
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    shown = f"[{host}]" if ":" in host else host
    path = f"namespaces/{environ['LEASE_NAMESPACE']}/leases/{environ['LEASE']}"
    return Lease(
        url=f"https://{shown}:{port}/apis/coordination.k8s.io/v1/{path}",
        holder=environ["LEASE_HOLDER"],
        seconds=seconds,
        account=account,
        trusted=ssl.create_default_context(cafile=account / "ca.crt"),
    )


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def main() -> int:
    """Read the arguments and run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--account", type=Path, default=ACCOUNT)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _end)  # while it waits for the lease there is no command yet
    return run(from_environment(given.seconds, os.environ, given.account), given.command)


if __name__ == "__main__":
    sys.exit(main())
