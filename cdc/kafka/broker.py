"""Says where Kafka's brokers are, how a client proves who it is, and whom it trusts."""

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Final

_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_ESCAPED: Final = {"\\": r"\\", '"': r"\"", "$": r"\044", "\n": r"\n", "\r": r"\r"}


@dataclass(frozen=True, slots=True)
class Broker:
    """Holds what a client needs to reach the brokers; ``bootstrap`` is ``host:port,host:port``.

    ``client_settings`` and ``java_settings`` contain the password and the key: never print them.
    """

    bootstrap: str
    _: KW_ONLY
    tls: bool = False
    ca_file: Path | None = None  # None: the certificates of the system
    certificate_file: Path | None = None
    key_file: Path | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    mechanism: str = "SCRAM-SHA-512"

    def __str__(self) -> str:
        return self.bootstrap

    @property
    def protocol(self) -> str:
        """Return Kafka's name for what the connections are secured by."""
        return ("SASL_" if self.user else "") + ("SSL" if self.tls else "PLAINTEXT")

    def client_settings(self) -> dict[str, Any]:
        """Return the settings of a client in this process (librdkafka)."""
        login = {
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
        }
        files = {
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file,
        }
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.protocol,
            **(login if self.user else {}),
            **{name: str(file) for name, file in files.items() if file is not None},
        }

    def java_settings(self) -> dict[str, str]:
        """Return the settings of a client in a JVM.

        Certificates and key are in them as text: an executor of Spark has no such files, and Java
        wants key and certificate in one. Raises OSError.
        """
        texts = {
            "ssl.truststore.certificates": self.ca_file,
            "ssl.keystore.certificate.chain": self.certificate_file,
            "ssl.keystore.key": self.key_file,
        }
        given = {name: file.read_text() for name, file in texts.items() if file is not None}
        stores = ("ssl.truststore", "ssl.keystore")
        types = {
            f"{store}.type": "PEM"
            for store in stores
            if any(name.startswith(store) for name in given)
        }
        login = {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self._jaas()}
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.protocol,
            **(login if self.user else {}),
            **types,
            **given,
        }

    def _jaas(self) -> str:
        module = _LOGIN_MODULES[self.mechanism]
        return f"{module} required username={_quoted(self.user)} password={_quoted(self.password)};"


def spark_options(broker: Broker) -> dict[str, str]:
    """Return the options of Spark's Kafka source, secrets included."""
    return {f"kafka.{name}": text for name, text in broker.java_settings().items()}


def _quoted(text: str) -> str:
    """Quote a text for Kafka's reader of JAAS (java.io.StreamTokenizer).

    A dollar sign becomes a code, as Kafka would resolve ``${provider:name}`` in a setting.
    """
    return '"' + "".join(_ESCAPED.get(sign, sign) for sign in text) + '"'
