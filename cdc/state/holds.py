"""Requests as the job takes them: what is none is set aside by name, and none lasts for ever."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from cdc.state import requests
from cdc.state.requests import MOST_HOLD_SECONDS, Request

logger = structlog.get_logger(__name__)
MOST_SECONDS: Final = 24 * 3600.0
"""So long is a request with a bound remembered, which keeps no cut from being published."""
ASIDE: Final = ".refused"


class Holds:
    """Of one run of the job. Time is counted by its own clock: others jump."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._since: dict[tuple[str, bool], float] = {}  # by id, and whether it has a bound
        self._told: set[str] = set()

    def pending(self, now: float) -> list[Request]:
        """Those that count, by id. Nothing that lies in the folder makes it fail."""
        self._set_aside()
        found = requests.pending(self._folder, now)
        known = {_kind(request): self._since.get(_kind(request)) for request in found}
        clock = self._clock()
        self._since = {kind: clock if at is None else at for kind, at in known.items()}
        return [request for request in found if self._counts(request, clock)]

    def _counts(self, request: Request, clock: float) -> bool:
        most = MOST_HOLD_SECONDS if request.bound is None else MOST_SECONDS
        if clock - self._since[_kind(request)] < most:
            return True
        self._tell("a request is passed over: it lasts too long", request.id)
        return False

    def _set_aside(self) -> None:
        """Rename what is called a request and is none, so that it is found, and not read again."""
        for path in requests.files(self._folder):
            if not requests.is_none(path):
                continue
            try:
                path.rename(path.with_name(path.name + ASIDE))
            except FileNotFoundError:  # it was taken back meanwhile
                continue
            except OSError as error:
                self._tell("a file is no request", path.name, error=type(error).__name__)
            else:
                self._tell("a file is no request, and was set aside", path.name)

    def _tell(self, event: str, name: str, **facts: str) -> None:
        if name not in self._told:
            self._told.add(name)
            logger.warning(event, name=ascii(name), **facts)


def _kind(request: Request) -> tuple[str, bool]:
    return request.id, request.bound is None
