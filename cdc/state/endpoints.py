"""Combine the configured and the embedded addresses of source, Kafka, Connect and registry."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from cdc import http_client
from cdc.config import Config, Connect, Kafka, Registry, Source
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir

NOT_UP = "the embedded stack is not up"
CONNECTOR_SECRETS: Final = "source.properties"
SOURCE_PASSWORD: Final = "password"  # noqa: S105 - the name of a setting
REGISTRY_PASSWORD: Final = "registry_password"  # noqa: S105 - the same
HASH_SALT: Final = "hash_salt"
_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
_KEY: Final = "-----BEGIN PRIVATE KEY-----"
_REMEDIES: Final = {
    _CERTIFICATE: "name a file with certificates in PEM",
    _KEY: "run openssl pkcs8 -topk8 -nocrypt -in OLD.key -out NEW.pem and name NEW.pem",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Holds the addresses that a client uses.

    Those of the source, of Connect and of the registry may contain a password. Show them only
    through ``address`` of cdc/source/server/connection.py and ``without_login`` of
    cdc/http_client.py.
    """

    source_url: str = field(repr=False)
    kafka: Broker
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
        "connect": configured_http_url("connect", config.connect),
        "registry": configured_http_url("registry", config.registry),
    }
    addresses = {name: value or embedded.get(name) for name, value in configured.items()}
    if missing := [name for name, value in addresses.items() if not value]:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            NOT_UP,
            detail=f"no address is known for {', '.join(missing)}",
            remedy="wal2lake up",
        )
    urls = {name: str(value) for name, value in addresses.items() if name != "kafka"}
    kafka = configured_broker(config.kafka) or Broker(str(addresses["kafka"]))
    return Endpoints(kafka=kafka, **urls)


def configured_broker(kafka: Kafka) -> Broker | None:
    """Return the configured brokers with their login and certificates; None if embedded.

    Raises CONFIG for a file that cannot be read or is not of the right form.
    """
    if kafka.bootstrap_servers is None:
        return None
    _refuse_unfit("kafka.ca_file", kafka.ca_file, _CERTIFICATE)
    _refuse_unfit("kafka.certificate_file", kafka.certificate_file, _CERTIFICATE)
    _refuse_unfit("kafka.key_file", kafka.key_file, _KEY)
    return Broker(
        kafka.bootstrap_servers,
        tls=kafka.encrypted,
        ca_file=kafka.ca_file,
        certificate_file=kafka.certificate_file,
        key_file=kafka.key_file,
        user=kafka.user or "",
        password=_password("kafka", kafka) or "",
        mechanism=kafka.sasl_mechanism,
    )


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


def configured_http_url(section: str, server: Connect | Registry) -> str | None:
    """Return the configured URL with its separate login and CA; None if embedded.

    Raises CONFIG for a file that cannot be read or is not of the right form.
    """
    url, password = _without_slash(server.url), _password(section, server)
    if url is None:
        return None
    _refuse_unfit(f"{section}.ca_file", server.ca_file, _CERTIFICATE)
    url = http_client.with_ca(url, server.ca_file)
    return http_client.with_login(url, server.user, password or "") if server.user else url


def _password(section: str, given: Source | Kafka | Connect | Registry) -> str | None:
    if given.password is not None:
        return given.password.get_secret_value()
    if given.password_file is None:
        return None
    return _read(f"{section}.password_file", given.password_file).rstrip("\n")


def _refuse_unfit(key: str, file: Path | None, begin: str) -> None:
    """Raise CONFIG if the file cannot be read, or has no part that begins this way."""
    if file is not None and begin not in _read(key, file):
        raise CdcError(
            ErrorKind.CONFIG,
            f"{key}: {file} has no line {begin}",
            remedy=_REMEDIES[begin],
        )


def _read(key: str, file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{key}: {file} cannot be read",
            detail=str(getattr(error, "strerror", None) or "not text"),
        ) from None


def write_connector_secrets(
    state: StateDir, source_url: str, registry_url: str, salt: str = ""
) -> None:
    """Write the connector's secrets to a private file for the embedded Connect worker.

    ``salt`` is that of the hashed columns, if there are any.
    """
    secrets = {
        SOURCE_PASSWORD: unquote(urlsplit(source_url).password or ""),
        REGISTRY_PASSWORD: unquote(urlsplit(registry_url).password or ""),
        **({HASH_SALT: salt} if salt else {}),
    }
    lines = [f"{name}={properties_value(text)}\n" for name, text in secrets.items()]
    write_private(state.secrets / CONNECTOR_SECRETS, "".join(lines))


def password_reference(state_dir: Path, name: str = SOURCE_PASSWORD) -> str:
    """Return what the connector's configuration holds instead of a password.

    For the embedded worker only.
    """
    return _reference(state_dir, name)


def salt_reference(state_dir: Path) -> str:
    """Return the same for the salt of the hashed columns."""
    return _reference(state_dir, HASH_SALT)


def _reference(state_dir: Path, name: str) -> str:
    # Resolved like the worker's allowed path, with which it is compared as text.
    return f"${{file:{StateDir(state_dir.resolve()).secrets / CONNECTOR_SECRETS}:{name}}}"


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
