"""Where the source, Kafka, Connect and the registry are: configured, or embedded and recorded."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from cdc import http_client
from cdc.config import Config, Connect, Source
from cdc.errors import CdcError, ErrorKind
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir, read_json

NOT_UP = "the embedded stack is not up"
SOURCE_SECRET = "source.properties"  # noqa: S105 - the name of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Addresses that a client uses.

    Those of the source and of Connect hold a password, and are shown by ``address`` of
    cdc/source/server/connection.py and ``shown`` of cdc/http_client.py alone.
    """

    source_url: str = field(repr=False)
    kafka: str
    connect: str = field(repr=False)
    registry: str = field(repr=False)


def resolve(config: Config) -> Endpoints:
    """The configured ones, else those that ``up`` recorded; raises UNREACHABLE without either."""
    recorded = read_json(StateDir(config.state_dir).endpoints_file) or {}
    return combine(config, {str(key): str(value) for key, value in recorded.items()})


def combine(config: Config, embedded: dict[str, str]) -> Endpoints:
    """Configured addresses win over ``embedded``, which holds those of the servers we run."""
    configured = {
        "source_url": configured_source_url(config.source),
        "kafka": config.kafka.bootstrap_servers,
        "connect": configured_connect_url(config.connect),
        "registry": _without_slash(config.registry.url),
    }
    found = {name: value or embedded.get(name) for name, value in configured.items()}
    if missing := [name for name, value in found.items() if not value]:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            NOT_UP,
            detail=f"nothing is known of {', '.join(missing)}",
            remedy="wal2lake up",
        )
    return Endpoints(**{name: str(value) for name, value in found.items()})


def record(state: StateDir, endpoints: Endpoints) -> None:
    names = ("source_url", "kafka", "connect", "registry")
    values = {name: getattr(endpoints, name) for name in names}
    write_private(state.endpoints_file, json.dumps(values, indent=2))


def configured_source_url(source: Source) -> str | None:
    """The configured URL with the password that came apart from it; None when it is embedded."""
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
    """The configured URL with the credentials that came apart from it; None where embedded."""
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


def write_source_secret(state: StateDir, source_url: str) -> None:
    """Give the password to the embedded worker through a file only it and we can read."""
    password = unquote(urlsplit(source_url).password or "")
    write_private(state.secrets / SOURCE_SECRET, f"password={properties_value(password)}\n")


def password_reference(state_dir: Path) -> str:
    """What the connector's configuration says in place of the password, embedded worker only."""
    # Resolved as the worker's allowed path is: it compares the two as texts.
    return f"${{file:{StateDir(state_dir.resolve()).secrets / SOURCE_SECRET}:password}}"


def properties_value(value: str) -> str:
    """Escaped for a Java properties file, which is Latin-1 and gives backslashes a meaning."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    if text.startswith((" ", "\t", "\f")):  # what a reader passes over in front of a value
        text = "\\" + text
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2)]
    return "".join(chr(code) if code < 0x7F else f"\\u{code:04x}" for code in codes)  # noqa: PLR2004


def _without_slash(url: str | None) -> str | None:
    return url.rstrip("/") if url else None
