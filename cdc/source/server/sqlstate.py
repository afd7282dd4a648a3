"""Find the SQLSTATE with which a server refuses a connection; libpq reports only its message.

The message is in the server's language and quotes user-given names. The SQLSTATE is part of the
server's answer, and libpq's trace of a second attempt shows it (from libpq 18 on).
"""

import os
import re
import select
import time
from typing import Final

import psycopg
from psycopg import pq

TAKEN: Final = "57P03"
"""Reported if the second attempt succeeds, as if the server had said to come later."""
_ANSWER: Final = re.compile(
    rb'^[^\t\n]*\tB\t\d+\tErrorResponse\t S "[^"\n]*"(?: V "[A-Z]+")? C "([0-9A-Z]{5})" ',
    re.MULTILINE,
)
_ENDED: Final = (pq.PollingStatus.OK, pq.PollingStatus.FAILED)


def connection_sqlstates(conninfo: str, seconds: float) -> frozenset[str]:
    """Return the SQLSTATEs of all answers to one connection attempt of at most ``seconds``.

    There may be several, because libpq may try with TLS and without. The set is empty if no answer
    came, or if libpq cannot trace it.
    """
    trace = os.memfd_create("trace")  # it holds the password exchange, so memory only
    try:
        accepted = _is_accepted(conninfo, trace, time.monotonic() + seconds)
        os.lseek(trace, 0, os.SEEK_SET)
        with os.fdopen(os.dup(trace), "rb") as file:
            sqlstates = frozenset(state.decode() for state in _ANSWER.findall(file.read()))
    except psycopg.Error:
        return frozenset()
    finally:
        os.close(trace)
    return sqlstates | {TAKEN} if accepted else sqlstates


def _is_accepted(conninfo: str, trace: int, until: float) -> bool:
    """Try to connect; return whether the server accepted. No answer in time counts as refused."""
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
