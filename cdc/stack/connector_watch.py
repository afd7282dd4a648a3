"""Restarting a connector or task that Connect reports as failed: it never does so itself."""

from dataclasses import dataclass

import httpx

_EVERY_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 60.0


@dataclass(slots=True)
class ConnectorWatch:
    """Asks every few seconds; restarts with growing pauses while it keeps failing."""

    connect_url: str
    name: str
    next_at: float = 0.0
    failures: int = 0

    def look(self, now: float) -> str | None:
        """What to report, if anything; a worker that does not answer is somebody else's matter."""
        if now < self.next_at:
            return None
        self.next_at = now + _EVERY_SECONDS
        reason = self._failure()
        if reason is None:
            self.failures = 0
            return None
        self.failures += 1
        self.next_at = now + min(_EVERY_SECONDS * 2**self.failures, _LONGEST_PAUSE_SECONDS)
        self._restart()
        return f"connector {self.name} failed and is restarted: {reason}"

    def _failure(self) -> str | None:
        """The first line of the first failed part; None while all run or nobody answers."""
        try:
            response = httpx.get(f"{self.connect_url}/connectors/{self.name}/status", timeout=3)
            said = response.json() if response.status_code == httpx.codes.OK else {}
        except (httpx.HTTPError, ValueError):
            return None
        parts = [said["connector"], *said["tasks"]] if "connector" in said else []
        failed = [part for part in parts if part["state"] == "FAILED"]
        trace = str(failed[0].get("trace", "")) if failed else ""
        return (trace.partition("\n")[0][:300] or "no trace") if failed else None

    def _restart(self) -> None:
        parameters = {"includeTasks": "true", "onlyFailed": "true"}
        url = f"{self.connect_url}/connectors/{self.name}/restart"
        try:
            httpx.post(url, params=parameters, timeout=10)
        except httpx.HTTPError:
            return  # asked again at the next look
