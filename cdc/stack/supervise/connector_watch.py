"""Restarts a failed connector or task, which Kafka Connect never does by itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import httpx

from cdc import http_client
from cdc.errors import CdcError, ErrorKind
from cdc.source.connector.connector_status import ConnectorStatus, connector_status
from cdc.source.connector.failure import cause, is_at_an_event

_EVERY_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 60.0
_ASK_SOURCE_EVERY_SECONDS = 30.0
_ABSENT_SECONDS = 120.0
"""This is longer than the connector waits between two attempts to reach its source."""


@dataclass(slots=True)
class Absence:
    """Measures how long the connector has had no session at the source."""

    is_at_source: Callable[[], bool | None]  # None if the source does not answer
    next_at: float = 0.0
    since: float | None = None

    def is_too_long(self, now: float) -> bool:
        """Return True once the connector has been absent for ``_ABSENT_SECONDS``.

        Asks the source at most every 30 s. After True the measurement starts over.
        """
        if now < self.next_at:
            return False
        self.next_at = now + _ASK_SOURCE_EVERY_SECONDS
        if self.is_at_source() is not False:
            self.since = None
        elif self.since is None:
            self.since = now
        elif now - self.since >= _ABSENT_SECONDS:
            self.since = None
            return True
        return False


class ExcludeUnreadable(Protocol):
    """Lets a failed connector continue without what it cannot read, and returns what that is."""

    def __call__(self, *, at_an_event: bool) -> Sequence[object]: ...


def _nothing(*, at_an_event: bool) -> Sequence[object]:
    del at_an_event
    return ()


@dataclass(slots=True)
class ConnectorWatch:
    """Checks the connector every few seconds; pauses grow while it keeps failing.

    A worker that could not record the failure of a task reports RUNNING for ever. A connector that
    is reported RUNNING but has had no session at the source for two minutes is therefore restarted
    as well.
    """

    connect_url: str
    name: str
    absence: Absence
    exclude_unreadable: ExcludeUnreadable = _nothing
    next_at: float = 0.0
    failures: int = 0

    def look(self, now: float) -> str | None:
        """Check the connector, restart it if needed, and return a message if anything was done.

        A worker that does not answer is ignored: the supervisor restarts it.
        """
        if now < self.next_at:
            return None
        self.next_at = now + _EVERY_SECONDS
        status = self._status()
        if status is not None and status.failed_part is not None:
            return self._after_failure(status.failed_part.trace, now)
        self.failures = 0
        if self._has_vanished(status, now):
            self._restart(only_failed=False)
            return (
                f"connector {self.name} is restarted: the worker reports RUNNING, but it has had "
                f"no session at the source for {_ABSENT_SECONDS:.0f} s"
            )
        return None

    def _after_failure(self, trace: str, now: float) -> str:
        self.failures += 1
        self.next_at = now + min(_EVERY_SECONDS * 2**self.failures, _LONGEST_PAUSE_SECONDS)
        failed = f"connector {self.name} failed"
        try:
            left_out = self.exclude_unreadable(at_an_event=is_at_an_event(trace))
        except CdcError as error:
            if error.kind is ErrorKind.CHAIN_BROKEN:
                return f"{failed} and is not restarted: {error.message}"
            left_out = ()  # no answer: ask again after the next failure
        message = f"{failed} and is restarted: {cause(trace) or 'no reason given'}"
        if left_out:
            return f"{message}; it continues without {', '.join(map(str, left_out))}"
        self._restart(only_failed=True)
        return message

    def _has_vanished(self, status: ConnectorStatus | None, now: float) -> bool:
        if status is not None and not status.not_running:
            return self.absence.is_too_long(now)
        self.absence.since = None
        return False

    def _status(self) -> ConnectorStatus | None:
        """Return the status of connector and tasks; None if nothing answers."""
        try:
            response = http_client.get(
                self.connect_url, f"/connectors/{self.name}/status", timeout=3
            )
            status = response.json() if response.status_code == httpx.codes.OK else {}
        except (httpx.HTTPError, ValueError, CdcError):
            return None
        return connector_status(status) if "connector" in status else None

    def _restart(self, *, only_failed: bool) -> None:
        parameters = {"includeTasks": "true", "onlyFailed": str(only_failed).lower()}
        path = f"/connectors/{self.name}/restart"
        try:
            http_client.request("POST", self.connect_url, path, params=parameters, timeout=10)
        except (httpx.HTTPError, CdcError):
            return  # the next look tries again
