"""Explain why a connection to the source failed, and how to fix it.

If the server refused, the SQLSTATE decides, because the server's message is in its own language and
quotes names. Errors that libpq detects itself have only a message, which is always English.
"""

import re
from collections.abc import Collection, Sequence
from typing import Final

from cdc.errors import CdcError, ErrorKind

_PASSWORD: Final = "set WAL2LAKE_SOURCE__PASSWORD or source.password_file"  # noqa: S105 - no password
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
"""Messages of a server that will accept connections later; used if there is no SQLSTATE."""
_LATER_STATES: Final = ("08", "53", "57")
_FOR_GOOD: Final = "57P04"  # the database was dropped

_OURS: Final = (
    ("no password supplied", "requires a password, and none is configured", _PASSWORD),
    (
        "server does not support SSL",
        "does not support TLS, which source.url requires",
        "enable TLS in Postgres (ssl = on), or remove sslmode from source.url",
    ),
    (
        "certificate verify failed",
        "presents a certificate that is not trusted",
        "set sslrootcert in source.url to the CA's certificate, or fix the server's certificate",
    ),
    (
        "root certificate file",
        "must present a certificate, but no CA certificate is installed to verify it",
        "set sslrootcert in source.url to the CA's certificate",
    ),
    (
        "does not match host name",
        "presents a certificate for another host name",
        "use the host name from the certificate in source.url",
    ),
    (
        "SSL error",
        "and this client cannot agree on TLS settings",
        "compare sslmode and the certificates in source.url with the server's",
    ),
)
"""Errors that libpq itself reports for a reachable server: its text, our meaning, the remedy."""


def connection_refusal(
    address: str, host: str, port: int, text: str, states: Collection[str] = ()
) -> CdcError:
    """Return the error for a failed connection attempt.

    ``text`` is libpq's message, ``states`` are the SQLSTATEs of the server's answers. The kind is
    UNREACHABLE if no server answers or it accepts no connections at the moment, SOURCE_NOT_READY if
    it will go on refusing this connection.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if states:
        temporary = any(map(_is_temporary, states))
        return _later(host, port, lines) if temporary else _refused(address, lines)
    for words, meaning, remedy in _OURS:
        if words in text:
            return _final(f"the source at {host}:{port} {meaning}", lines, remedy)
    if any(words in text for words in _LATER):
        return _later(host, port, lines)
    return _refused(address, lines) if "FATAL" in text else _unanswered(host, port, lines)


def unknown_host(host: str, text: str) -> CdcError:
    """Return the error for a host name that cannot be resolved.

    It is UNREACHABLE, because waiting may help: the name server may be down.
    """
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"the host name {host} cannot be resolved",
        detail=text.partition(": ")[2],
        remedy="correct the host in source.url; if it is right, check the name server and retry",
    )


def _is_temporary(state: str) -> bool:
    return state.startswith(_LATER_STATES) and state != _FOR_GOOD


def _later(host: str, port: int, lines: Sequence[str]) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"the source at {host}:{port} accepts no connections at the moment",
        detail=_server_message(lines),
        remedy="wait until it has started or has free connections, then retry",
    )


def _refused(address: str, lines: Sequence[str]) -> CdcError:
    return _final(
        f"the source refuses the connection as {address}",
        lines,
        f"check user, database and pg_hba.conf; for the password, {_PASSWORD}",
    )


def _final(message: str, lines: Sequence[str], remedy: str) -> CdcError:
    return CdcError(
        ErrorKind.SOURCE_NOT_READY, message, detail=_server_message(lines), remedy=remedy
    )


def _unanswered(host: str, port: int, lines: Sequence[str]) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"no Postgres answers at {host}:{port}",
        detail=lines[-1] if lines else "",
        remedy="start it, or correct source.url",
    )


def _server_message(lines: Sequence[str]) -> str:
    """Return the server's own message, without its address and the severity."""
    answers = [line for line in lines if " failed: " in line] or list(lines)
    return re.sub(r"^.* failed: (?:\S+: +)?", "", answers[-1]) if answers else ""
