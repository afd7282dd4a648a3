"""What ``source.url`` asks of TLS, in the connector's terms; and what of the URL it cannot keep.

Our own sessions are libpq's, those of the connector are Java's. A parameter that the connector
has no word for is refused: a session of it would be less than what was asked for.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from psycopg import pq

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.server.connection import parameters

KEPT: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword")
_OURS_ALONE: Final = (
    *("host", "port", "user", "password", "passfile", "dbname", "options", "client_encoding"),
    *("connect_timeout", "application_name", "fallback_application_name", "target_session_attrs"),
    *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    "tcp_user_timeout",
)
"""Given to the connector otherwise, or of no meaning for what it may be told and by whom."""
_NO_DEMAND: Final = {
    "channel_binding": ("prefer", "disable"),
    "gssencmode": ("prefer", "disable"),
    "sslcertmode": ("allow",),
}
"""Values by which nothing is asked for, beside libpq's defaults."""
_FILES: Final = {
    "sslrootcert": "root.crt",
    "sslcert": "postgresql.crt",
    "sslkey": "postgresql.key",
}
"""What libpq takes from ``~/.postgresql`` where it is told nothing and finds it there."""
_ALGORITHMS: Final = {
    bytes.fromhex("06092a864886f70d010101"): "RSA",
    bytes.fromhex("06072a8648ce3d0201"): "EC",
}
"""How a PKCS-8 key says what it is: near its beginning."""
_PEM: Final = re.compile(
    rb"-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----"
)
_HEAD: Final = 40


def tls(config: Config, source_url: str) -> dict[str, str]:
    """By the names of ``KEPT`` and ``key_algorithm``; empty where nothing is to be said.

    Files of ``connect.source_url`` are the worker's and taken as they are named. Raises CONFIG for
    what cannot be kept.
    """
    if config.connect.source_url:
        found = parameters(config.connect.source_url)
        _refuse_unkept(found, "connect.source_url")
        return _told(found, algorithm="")
    found = _environment() | parameters(source_url)
    _refuse_unkept(found, "source.url")
    if found.get("sslmode") == "disable":
        return _told({"sslmode": "disable"}, algorithm="")
    found |= _files_here(found)
    return _told(found, algorithm=_algorithm(found["sslkey"]) if found.get("sslkey") else "")


def _told(found: Mapping[str, str], algorithm: str) -> dict[str, str]:
    mode = found.get("sslmode") or "prefer"
    if mode == "require" and found.get("sslrootcert"):
        mode = "verify-ca"  # so libpq takes it, and Java's driver does not
    return {**{name: found.get(name) or "" for name in KEPT}, "sslmode": mode} | {
        "key_algorithm": algorithm
    }


def _environment() -> dict[str, str]:
    """What variables (PGSSLMODE) make of the defaults of libpq."""
    return {
        option.keyword.decode(): option.val.decode()
        for option in pq.Conninfo.get_defaults()
        if option.val is not None and option.val != option.compiled
    }


def _refuse_unkept(found: Mapping[str, str], where: str) -> None:
    defaults = {
        option.keyword.decode(): (option.compiled or b"").decode()
        for option in pq.Conninfo.get_defaults()
    }
    for name, value in found.items():
        usual = ("", defaults.get(name, ""), *_NO_DEMAND.get(name, ()))
        if name not in (*KEPT, *_OURS_ALONE) and value not in usual:
            raise _unkept(f"{where}: the connector cannot keep {name}", f"take {name} out")
    if found.get("sslrootcert") == "system":
        raise _unkept(
            f"{where}: the connector does not know sslrootcert=system",
            "name the file with the authorities, and sslmode=verify-full",
        )


def _files_here(found: Mapping[str, str]) -> dict[str, str]:
    """The files that libpq uses here, by whole paths: job and worker run in other directories."""
    home = Path.home() / ".postgresql"
    usual = {name: str(home / file) for name, file in _FILES.items() if (home / file).exists()}
    if "sslcert" not in {**usual, **found}:
        usual.pop("sslkey", None)
    named = {name: found[name] for name in _FILES if found.get(name)}
    for name, file in named.items():
        if not Path(file).is_absolute():
            raise _unkept(f"{name} {file} is no whole path", "name the file from / on")
    return usual | named


def _algorithm(file: str) -> str:
    """Of a key in the one form that OpenSSL and Java both read. Raises CONFIG for any other."""
    try:
        content = Path(file).read_bytes()
        pem = _PEM.search(content)
        key = base64.b64decode(pem[1]) if pem else content
    except OSError as error:
        raise _unkept(f"sslkey {file} cannot be read", "correct it", str(error.strerror)) from None
    except binascii.Error:
        key = b""
    found = [name for mark, name in _ALGORITHMS.items() if mark in key[:_HEAD]]
    # Java's driver goes by the end of the name before it looks.
    misnamed = (".p12", ".pfx", ".der") if pem else (".p12", ".pfx", ".pem")
    if not found or file.lower().endswith(misnamed):
        raise _unkept(
            f"sslkey {file} is in a form, or has a name, that the connector does not read",
            "openssl pkcs8 -topk8 -nocrypt -in OLD.key -out NEW.pem, and name that; RSA or EC",
        )
    return found[0]


def _unkept(message: str, remedy: str, detail: str = "") -> CdcError:
    return CdcError(ErrorKind.CONFIG, message, detail=detail, remedy=remedy)
