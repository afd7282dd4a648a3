"""Translate the TLS parameters of ``source.url`` for the connector, and refuse unsupported ones.

Our own sessions use libpq, the connector's use Java's driver. A parameter that the connector cannot
honour is refused, because its sessions would be less secure than the URL demands.
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

PASSED_ON: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword")
_NOT_PASSED_ON: Final = (
    *("host", "port", "user", "password", "passfile", "dbname", "options", "client_encoding"),
    *("connect_timeout", "application_name", "fallback_application_name", "target_session_attrs"),
    *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    "tcp_user_timeout",
)
"""Parameters that reach the connector in other ways, or that do not affect its security."""
_NO_DEMAND: Final = {
    "channel_binding": ("prefer", "disable"),
    "gssencmode": ("prefer", "disable"),
    "sslcertmode": ("allow",),
}
"""Values that demand nothing, besides libpq's defaults."""
_FILES: Final = {
    "sslrootcert": "root.crt",
    "sslcert": "postgresql.crt",
    "sslkey": "postgresql.key",
}
"""Files in ``~/.postgresql`` that libpq uses by default if they exist."""
_ALGORITHMS: Final = {
    bytes.fromhex("06092a864886f70d010101"): "RSA",
    bytes.fromhex("06072a8648ce3d0201"): "EC",
}
"""The marks near the beginning of a PKCS-8 key that tell its algorithm."""
_PEM: Final = re.compile(
    rb"-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----"
)
_HEAD: Final = 40


def tls(config: Config, source_url: str) -> dict[str, str]:
    """Return the connector's TLS settings: the names in ``PASSED_ON`` and ``key_algorithm``.

    A value is empty if the setting does not apply. Files in ``connect.source_url`` are the
    worker's, and their names are passed on unchanged. Raises CONFIG for a parameter that the
    connector cannot honour.
    """
    if config.connect.source_url:
        given = parameters(config.connect.source_url)
        _refuse_unsupported(given, "connect.source_url")
        return _connector_settings(given, algorithm="")
    given = _environment() | parameters(source_url)
    _refuse_unsupported(given, "source.url")
    if given.get("sslmode") == "disable":
        return _connector_settings({"sslmode": "disable"}, algorithm="")
    given |= _files_here(given)
    return _connector_settings(
        given, algorithm=_algorithm(given["sslkey"]) if given.get("sslkey") else ""
    )


def _connector_settings(given: Mapping[str, str], algorithm: str) -> dict[str, str]:
    mode = given.get("sslmode") or "prefer"
    if mode == "require" and given.get("sslrootcert"):
        mode = "verify-ca"  # libpq reads it this way, Java's driver does not
    return {**{name: given.get(name) or "" for name in PASSED_ON}, "sslmode": mode} | {
        "key_algorithm": algorithm
    }


def _environment() -> dict[str, str]:
    """Return the parameters that environment variables such as PGSSLMODE set."""
    return {
        option.keyword.decode(): option.val.decode()
        for option in pq.Conninfo.get_defaults()
        if option.val is not None and option.val != option.compiled
    }


def _refuse_unsupported(given: Mapping[str, str], where: str) -> None:
    defaults = {
        option.keyword.decode(): (option.compiled or b"").decode()
        for option in pq.Conninfo.get_defaults()
    }
    for name, value in given.items():
        usual = ("", defaults.get(name, ""), *_NO_DEMAND.get(name, ()))
        if name not in (*PASSED_ON, *_NOT_PASSED_ON) and value not in usual:
            raise _unsupported(f"{where}: the connector does not support {name}", f"remove {name}")
    if given.get("sslrootcert") == "system":
        raise _unsupported(
            f"{where}: the connector does not support sslrootcert=system",
            "set sslrootcert to the file with the CA certificates, and sslmode=verify-full",
        )


def _files_here(given: Mapping[str, str]) -> dict[str, str]:
    """Return the files libpq uses, as absolute paths: job and worker run in other directories."""
    home = Path.home() / ".postgresql"
    usual = {name: str(home / file) for name, file in _FILES.items() if (home / file).exists()}
    if "sslcert" not in {**usual, **given}:
        usual.pop("sslkey", None)
    named = {name: given[name] for name in _FILES if given.get(name)}
    for name, file in named.items():
        if not Path(file).is_absolute():
            raise _unsupported(f"{name} {file} is not an absolute path", "write the path from / on")
    return usual | named


def _algorithm(file: str) -> str:
    """Return the algorithm of a PKCS-8 key, the one form that both OpenSSL and Java read.

    Raises CONFIG for a key in any other form.
    """
    try:
        content = Path(file).read_bytes()
        pem = _PEM.search(content)
        key = base64.b64decode(pem[1]) if pem else content
    except OSError as error:
        raise _unsupported(
            f"sslkey {file} cannot be read",
            "correct the path or its permissions",
            str(error.strerror),
        ) from None
    except binascii.Error:
        key = b""
    algorithms = [name for mark, name in _ALGORITHMS.items() if mark in key[:_HEAD]]
    # Java's driver judges by the suffix before it reads the file.
    misnamed = (".p12", ".pfx", ".der") if pem else (".p12", ".pfx", ".pem")
    if not algorithms or file.lower().endswith(misnamed):
        raise _unsupported(
            f"the connector cannot read sslkey {file}: unsupported format or file name",
            "run openssl pkcs8 -topk8 -nocrypt -in OLD.key -out NEW.pem and set sslkey to NEW.pem "
            "(RSA or EC)",
        )
    return algorithms[0]


def _unsupported(message: str, remedy: str, detail: str = "") -> CdcError:
    return CdcError(ErrorKind.CONFIG, message, detail=detail, remedy=remedy)
