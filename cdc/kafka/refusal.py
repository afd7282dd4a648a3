"""Find out why brokers refuse a client: a client itself only says that nobody answers."""

import logging
import re
import socket
import ssl
import time
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker

_SECONDS: Final = 3.0
_CONNECT_SECONDS: Final = 1.0
_SILENT: Final = logging.getLogger("cdc.kafka.client")
_LOGIN: Final = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)  # noqa: SLF001
_DOWN: Final = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - librdkafka's own, and documented
_RIGHTS: Final = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
_TLS: Final = re.compile("SSL routines.*(alert|wrong version|verify failed)")
"""OpenSSL's final words; a broker that goes down ends a handshake with others."""


def refusal(broker: Broker) -> CdcError | None:
    """Return a CONFIG error with the brokers' reason, None if they accept the client or are away.

    It is UNREACHABLE if they accept connections and close them without a word: they may be
    starting, or expect TLS or a login.
    """
    listening = [place for place in broker.bootstrap.split(",") if _is_listening(place)]
    if not listening:
        return None
    fault = next(filter(None, (_certificate_fault(broker, place) for place in listening)), None)
    return fault or _client_fault(broker)


def failed(doing: str, error: KafkaException) -> CdcError:
    """Return the error of a request: CONFIG if our user has no right to it, else UNREACHABLE."""
    found: KafkaError = error.args[0]
    return forbidden(found, doing) or CdcError(
        ErrorKind.UNREACHABLE, f"{doing} failed", detail=str(found.str())
    )


def forbidden(error: KafkaError, doing: str) -> CdcError | None:
    """Return a CONFIG error if a broker refuses a request for want of a right, else None."""
    if error.code() not in _RIGHTS:
        return None
    return CdcError(
        ErrorKind.CONFIG,
        f"{doing} is not permitted",
        detail=str(error.str()),
        remedy="give kafka.user the rights that docs/how-to/own-servers.md lists",
    )


def _address(place: str) -> tuple[str, int]:
    host, _, port = place.strip().rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0


def _is_listening(place: str) -> bool:
    try:
        socket.create_connection(_address(place), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _certificate_fault(broker: Broker, place: str) -> CdcError | None:
    """Return the error of the broker's certificate; only Python's TLS says what it is."""
    if not broker.tls:
        return None
    host, port = _address(place)
    try:
        context = ssl.create_default_context(cafile=broker.ca_file)
        with socket.create_connection((host, port), timeout=_CONNECT_SECONDS) as plain:
            context.wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLCertVerificationError as error:
        return CdcError(
            ErrorKind.CONFIG,
            f"Kafka at {place} presents a certificate that is not trusted",
            detail=error.verify_message,
            remedy="set kafka.ca_file to the CA's certificate, use the host name of the "
            "certificate in kafka.bootstrap_servers, or renew the certificate",
        )
    except OSError:
        return None  # the client says more: without its certificate this handshake may fail
    return None


def _client_fault(broker: Broker) -> CdcError | None:
    """Return the error that a client meets, None if it meets none."""
    errors: list[KafkaError] = []
    settings: dict[str, Any] = {**broker.client_settings(), "error_cb": errors.append}
    client = AdminClient(settings, logger=_SILENT)
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        client.poll(0.1)
        if found := next(filter(None, (_meaning(broker, error) for error in errors)), None):
            return found
    return _closed(broker) if any(error.code() == _DOWN for error in errors) else None


def _meaning(broker: Broker, error: KafkaError) -> CdcError | None:
    text = str(error.str())
    if error.code() in _LOGIN:
        return _refused(
            f"Kafka at {broker} refuses our credentials",
            text,
            "set kafka.user, and kafka.password or kafka.password_file; compare "
            "kafka.sasl_mechanism with the broker's",
        )
    if _TLS.search(text):
        return _refused(
            f"Kafka at {broker} and this client cannot agree on TLS",
            text,
            "set kafka.certificate_file and kafka.key_file if the broker asks for them; leave out "
            "kafka.tls and kafka.ca_file if the port is not encrypted",
        )
    return None


def _refused(message: str, text: str, remedy: str) -> CdcError:
    # librdkafka puts the name of the connection in front, and its state behind.
    detail = text.partition(": ")[2].partition(" (after ")[0] or text
    return CdcError(ErrorKind.CONFIG, message, detail=detail, remedy=remedy)


def _closed(broker: Broker) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"no Kafka broker answers at {broker}",
        detail="it accepts connections and closes them",
        remedy="set kafka.ca_file (or kafka.tls) and kafka.user as the port in "
        "kafka.bootstrap_servers requires; if they are right, wait until the broker has started",
    )
