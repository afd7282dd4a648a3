"""Holds the requests for a cut at a given LSN, and tells which of them a cut serves."""

import time
from collections.abc import Sequence

from cdc.apply.rounds.log_slice import Slice
from cdc.apply.rounds.whole_transactions import Cut
from cdc.state.request_reader import RequestReader
from cdc.state.requests import Request


class CutRequests:
    """Tells which requests still wait in one run of the job; used by the thread of the rounds."""

    def __init__(self, reader: RequestReader) -> None:
        self._reader = reader
        self._served: set[str] = set()

    def pending(self, reached: int) -> list[Request]:
        """Return the requests that still wait; ``reached`` is the LSN of the last cut.

        A bound before the last cut cannot be met any more; the requester sees in the ledger that
        the cut has passed it.
        """
        waiting = self._reader.pending(time.time())
        self._served &= {request.id for request in waiting}
        return [
            request
            for request in waiting
            if request.id not in self._served
            and (request.bound is None or request.bound >= reached)
        ]

    def mark_served(self, request: Request) -> None:
        """Ignore the request from now on, as its cut is published."""
        self._served.add(request.id)


def served_by(
    waiting: Sequence[Request], part: Slice, cut: Cut, bound: int | None, *, reached: int
) -> Request | None:
    """Return the request that the cut serves: the cut has every commit up to the bound.

    That is certain once a commit beyond the bound has landed, since END markers are in commit
    order. A bound before the last cut (at the LSN ``reached``) comes too late to be met.
    """
    if bound is None or bound < reached or not any(end.lsn > bound for end in part.ends):
        return None
    inside = [end.lsn for end in part.ends if end.lsn <= bound]
    if inside and cut.lsn != max(inside):
        return None  # a transaction up to the bound is not complete yet
    return next(request for request in waiting if request.bound == bound)
