"""The addresses of the source, Kafka, Connect and the registry, configured or embedded."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from cdc import http_client
from cdc.config import Config, Connect, Source
from cdc.errors import CdcError, ErrorKind
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir

NOT_UP = "the embedded stack is not up"
SOURCE_SECRET = "source.properties"  # noqa: S105 - the name of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """The addresses that a client uses.

    Those of the source and of Connect contain a password. Show them only through ``address`` of
    cdc/source/server/connection.py and ``shown`` of cdc/http_client.py.
    """

    source_url: str = field(repr=False)
    kafka: str
    connect: str = field(repr=False)
    registry: str = field(repr=False)


def combine(config: Config, embedded: dict[str, str]) -> Endpoints:
    """Return the configured addresses, completed by those of the servers that we run.

    ``embedded`` maps field names of Endpoints to addresses. Raises UNREACHABLE if one is missing
    in both.
    """
    configured = {
        "source_url": configured_source_url(config.source),
        "kafka": config.kafka.bootstrap_servers,
        "connect": configured_connect_url(config.connect),
        "registry": _without_slash(config.registry.url),
    }
    addresses = {name: value or embedded.get(name) for name, value in configured.items()}
    if missing := [name for name, value in addresses.items() if not value]:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            NOT_UP,
            detail=f"no address is known for {', '.join(missing)}",
            remedy="wal2lake up",
        )
    return Endpoints(**{name: str(value) for name, value in addresses.items()})


def record(state: StateDir, endpoints: Endpoints) -> None:
    """Write the addresses to ``endpoints.json``, for ``resolve`` of cdc/state/pipeline.py."""
    names = ("source_url", "kafka", "connect", "registry")
    values = {name: getattr(endpoints, name) for name in names}
    write_private(state.endpoints_file, json.dumps(values, indent=2))


def configured_source_url(source: Source) -> str | None:
    """Return the configured URL with its separately configured password; None if embedded."""
    if source.url is None:
        return None
    password = _password("source", source)
    if password is None:
        return source.url
    parts = urlsplit(source.url)
    host = parts.netloc.rpartition("@")[2]
    user = quote(unquote(parts.username or "postgres"), safe="")
    netloc = f"{user}:{quote(password, safe='')}@{host}"
    return urlunsplit(parts._replace(netloc=netloc))


def configured_connect_url(worker: Connect) -> str | None:
    """Return the configured URL with its separately configured login; None if embedded."""
    url, password = _without_slash(worker.url), _password("connect", worker)
    if url is None or worker.user is None:
        return url
    return http_client.with_login(url, worker.user, password or "")


def _password(section: str, given: Source | Connect) -> str | None:
    if given.password is not None:
        return given.password.get_secret_value()
    if given.password_file is None:
        return None
    try:
        return given.password_file.read_text().rstrip("\n")
    except OSError as error:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{section}.password_file: {given.password_file} cannot be read",
            detail=str(error.strerror),
        ) from None


def write_source_secret(state: StateDir, source_url: str, salt: str = "") -> None:
    """Write the source's password to a private file for the embedded Connect worker.

    ``salt`` is that of the hashed columns, if there are any.
    """
    secrets = {"password": unquote(urlsplit(source_url).password or "")}
    if salt:
        secrets["hash_salt"] = salt
    lines = (f"{name}={properties_value(value)}\n" for name, value in secrets.items())
    write_private(state.secrets / SOURCE_SECRET, "".join(lines))


def password_reference(state_dir: Path) -> str:
    """Return what the connector's configuration holds instead of the password.

    For the embedded worker only.
    """
    return _reference(state_dir, "password")


def salt_reference(state_dir: Path) -> str:
    """Return the same for the salt of the hashed columns."""
    return _reference(state_dir, "hash_salt")


def _reference(state_dir: Path, name: str) -> str:
    # Resolved like the worker's allowed path, with which it is compared as text.
    return f"${{file:{StateDir(state_dir.resolve()).secrets / SOURCE_SECRET}:{name}}}"


def properties_value(value: str) -> str:
    """Escape a value for a Java properties file: Latin-1, with backslash as the escape."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    if text.startswith((" ", "\t", "\f")):  # Java skips blanks in front of a value
        text = "\\" + text
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2)]
    return "".join(chr(code) if code < 0x7F else f"\\u{code:04x}" for code in codes)  # noqa: PLR2004


def _without_slash(url: str | None) -> str | None:
    return url.rstrip("/") if url else None
