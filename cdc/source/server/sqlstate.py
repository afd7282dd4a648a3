"""By which SQLSTATE a server refuses a connection: libpq tells its words alone.

They are the server's own language, and quote names that a user has given. The code is in the
answer, and libpq's trace of a second attempt shows it (from libpq 18 on).
"""

import os
import re
import select
import time
from typing import Final

import psycopg
from psycopg import pq

TAKEN: Final = "57P03"
"""For one that took the second attempt: as if it had said that it cannot now."""
_ANSWER: Final = re.compile(
    rb'^[^\t\n]*\tB\t\d+\tErrorResponse\t S "[^"\n]*"(?: V "[A-Z]+")? C "([0-9A-Z]{5})" ',
    re.MULTILINE,
)
_ENDED: Final = (pq.PollingStatus.OK, pq.PollingStatus.FAILED)


def states(conninfo: str, seconds: float) -> frozenset[str]:
    """Those of all answers to one connection, which may be tried with TLS and without.

    Empty where none came, or where libpq does not trace it.
    """
    trace = os.memfd_create("trace")  # it holds what is said for the password: memory alone
    try:
        taken = _tried(conninfo, trace, time.monotonic() + seconds)
        os.lseek(trace, 0, os.SEEK_SET)
        with os.fdopen(os.dup(trace), "rb") as file:
            found = frozenset(state.decode() for state in _ANSWER.findall(file.read()))
    except psycopg.Error:
        return frozenset()
    finally:
        os.close(trace)
    return found | {TAKEN} if taken else found


def _tried(conninfo: str, trace: int, until: float) -> bool:
    """Whether it was taken; that it is neither taken nor refused in time counts for refused."""
    attempt = pq.PGconn.connect_start(conninfo.encode())
    try:
        if attempt.status == pq.ConnStatus.BAD:
            return False
        attempt.trace(trace)
        while (status := attempt.connect_poll()) not in _ENDED:
            reads = status == pq.PollingStatus.READING
            waiting = select.poll()
            waiting.register(attempt.socket, select.POLLIN if reads else select.POLLOUT)
            if not waiting.poll(max(until - time.monotonic(), 0) * 1000):
                return False
        attempt.untrace()
    finally:
        attempt.finish()
    return status == pq.PollingStatus.OK
