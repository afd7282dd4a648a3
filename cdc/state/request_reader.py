"""Reads requests for the job: invalid files are renamed, and no request lasts for ever."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from cdc.state import requests
from cdc.state.requests import MOST_HOLD_SECONDS, Request

logger = structlog.get_logger(__name__)
MOST_SECONDS: Final = 24 * 3600.0
"""Lifetime of a request with a bound, which does not keep cuts from being published."""
ASIDE: Final = ".refused"


class RequestReader:
    """Tracks the requests that one run of the job sees.

    Their age is measured by the job's monotonic clock, because wall clocks jump.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._since: dict[tuple[str, bool], float] = {}  # by id, and whether it has a bound
        self._logged: set[str] = set()

    def pending(self, now: float) -> list[Request]:
        """Return the requests that count, by id; nothing in the folder makes this fail.

        ``now`` is in seconds since 1970.
        """
        self._set_aside()
        unexpired = requests.pending(self._folder, now)
        known = {_kind(request): self._since.get(_kind(request)) for request in unexpired}
        clock = self._clock()
        self._since = {kind: clock if at is None else at for kind, at in known.items()}
        return [request for request in unexpired if self._counts(request, clock)]

    def _counts(self, request: Request, clock: float) -> bool:
        most = MOST_HOLD_SECONDS if request.bound is None else MOST_SECONDS
        if clock - self._since[_kind(request)] < most:
            return True
        self._warn("a request is ignored: it has lasted too long", request.id)
        return False

    def _set_aside(self) -> None:
        """Rename invalid files, so that a person finds them and they are not read again."""
        for path in requests.files(self._folder):
            if not requests.is_invalid(path):
                continue
            try:
                path.rename(path.with_name(path.name + ASIDE))
            except FileNotFoundError:  # it was removed meanwhile
                continue
            except OSError as error:
                self._warn("a file is not a valid request", path.name, error=type(error).__name__)
            else:
                self._warn("a file is not a valid request and was renamed", path.name)

    def _warn(self, event: str, name: str, **facts: str) -> None:
        if name not in self._logged:
            self._logged.add(name)
            logger.warning(event, name=ascii(name), **facts)


def _kind(request: Request) -> tuple[str, bool]:
    return request.id, request.bound is None
