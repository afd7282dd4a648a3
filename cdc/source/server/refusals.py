"""What it means that a connection to the source failed, and what can be done about it.

Where the server refuses, its SQLSTATE decides: its words are of its own language, and quote names.
Of what libpq finds out itself there are only words; its own are English.
"""

import re
from collections.abc import Collection, Sequence
from typing import Final

from cdc.errors import CdcError, ErrorKind

_PASSWORD: Final = "give it by WAL2LAKE_SOURCE__PASSWORD or source.password_file"  # noqa: S105 - no password
_LATER: Final = (
    "starting up",
    "shutting down",
    "in recovery mode",
    "not yet accepting connections",
    "not accepting connections",
    "too many",
    "connection slots are reserved",
    "terminating connection",
)
"""What a server says that takes connections at another time, where no SQLSTATE is to be had."""
_LATER_STATES: Final = ("08", "53", "57")
_FOR_GOOD: Final = "57P04"  # the database was dropped

_OURS: Final = (
    ("no password supplied", "asks for a password, and none is given", _PASSWORD),
    (
        "server does not support SSL",
        "does not speak TLS, which the URL asks for",
        "turn TLS on in Postgres (ssl = on), or take sslmode out of source.url",
    ),
    (
        "certificate verify failed",
        "shows a certificate that is not trusted here",
        "name the authority's certificate by sslrootcert in source.url, or correct the server's",
    ),
    (
        "root certificate file",
        "is to show a certificate, and there is none here to judge it by",
        "name the authority's certificate by sslrootcert in source.url",
    ),
    (
        "does not match host name",
        "shows the certificate of another host",
        "use the name that stands in the certificate as host of source.url",
    ),
    (
        "SSL error",
        "and this client do not agree on TLS",
        "compare sslmode and the certificates of source.url with those of the server",
    ),
)
"""What libpq says itself of a server that is there: words, ours for them, the remedy."""


def refusal(
    address: str, host: str, port: int, text: str, states: Collection[str] = ()
) -> CdcError:
    """Return what a failed connection means.

    ``text`` is libpq's, ``states`` are the SQLSTATEs by which the server refused. UNREACHABLE where
    nobody answers or the server takes no connection now, SOURCE_NOT_READY where it will take none
    like this.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if states:
        passes = any(map(_passes, states))
        return _later(host, port, lines) if passes else _refused(address, lines)
    for words, meaning, remedy in _OURS:
        if words in text:
            return _final(f"the source at {host}:{port} {meaning}", lines, remedy)
    if any(words in text for words in _LATER):
        return _later(host, port, lines)
    return _refused(address, lines) if "FATAL" in text else _silent(host, port, lines)


def unknown_host(host: str, text: str) -> CdcError:
    """Waits may help, so it is UNREACHABLE: a name server may be away as well."""
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"no host {host} is known here",
        detail=text.partition(": ")[2],
        remedy="correct the host in source.url; where it is right, see to the name server and ask "
        "again",
    )


def _passes(state: str) -> bool:
    return state.startswith(_LATER_STATES) and state != _FOR_GOOD


def _later(host: str, port: int, lines: Sequence[str]) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"the source at {host}:{port} takes no connection now",
        detail=_said(lines),
        remedy="wait until it is up, or has connections left, and ask again",
    )


def _refused(address: str, lines: Sequence[str]) -> CdcError:
    return _final(
        f"the source refuses {address}",
        lines,
        f"check user, database and pg_hba.conf; the password: {_PASSWORD}",
    )


def _final(message: str, lines: Sequence[str], remedy: str) -> CdcError:
    return CdcError(ErrorKind.SOURCE_NOT_READY, message, detail=_said(lines), remedy=remedy)


def _silent(host: str, port: int, lines: Sequence[str]) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"no Postgres answers at {host}:{port}",
        detail=lines[-1] if lines else "",
        remedy="start it, or correct source.url",
    )


def _said(lines: Sequence[str]) -> str:
    """The server's own words, without where it was reached and how bad it is."""
    said = [line for line in lines if " failed: " in line] or list(lines)
    return re.sub(r"^.* failed: (?:\S+: +)?", "", said[-1]) if said else ""
