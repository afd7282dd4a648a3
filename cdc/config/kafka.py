"""Define the ``kafka`` section of the configuration file."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from cdc.config.section import Section, refuse_half_login

SaslMechanism = Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]


class Kafka(Section):
    """Says how to reach the Kafka broker that holds the change events, and how it keeps them."""

    bootstrap_servers: str | None = None
    """The brokers as ``host:port,host:port``. If absent, an embedded broker is started."""
    user: str | None = None
    """The user for SASL. If absent, clients do not log in by a password."""
    password: SecretStr | None = None
    """The password of ``kafka.user``. Prefer WAL2LAKE_KAFKA__PASSWORD or ``password_file``."""
    password_file: Path | None = None
    """A file that holds the password of ``kafka.user`` and nothing else."""
    sasl_mechanism: SaslMechanism = "SCRAM-SHA-512"
    """How ``kafka.user`` logs in: ``SCRAM-SHA-512``, ``SCRAM-SHA-256`` or, over TLS only,
    ``PLAIN``."""
    tls: bool = False
    """Encrypts the connections, and verifies the brokers' certificates and host names; so do
    ``ca_file`` and ``certificate_file`` by themselves."""
    ca_file: Path | None = None
    """The CA certificates to trust, in PEM. If absent, with ``tls: true``, those of the system."""
    certificate_file: Path | None = None
    """The client's certificate, followed by those that lead to its CA, in PEM."""
    key_file: Path | None = None
    """The key of ``certificate_file``: PKCS-8 in PEM, without a password."""
    replication_factor: int = Field(1, ge=1)
    """The replication factor of the topics that wal2lake creates."""
    min_compaction_lag_ms: int = Field(86_400_000, ge=0)
    """How long every change event is kept before compaction may reduce a key to its newest one."""
    delete_retention_ms: int = Field(604_800_000, ge=0)
    """How long a tombstone outlives its compaction. Set it longer than the job may ever be down."""

    @property
    def encrypted(self) -> bool:
        """Return whether clients use TLS."""
        return bool(self.tls or self.ca_file or self.certificate_file)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Refuse settings that are given by half, or that would protect less than they seem to."""
        files = [self.ca_file, self.certificate_file, self.key_file]
        named = self.user is not None or self.password is not None or self.password_file is not None
        if self.bootstrap_servers is None and (named or self.tls or any(files)):
            message = (
                "user, password, tls, ca_file, certificate_file and key_file belong to brokers at "
                "kafka.bootstrap_servers, which is not set"
            )
        elif (self.certificate_file is None) != (self.key_file is None):
            message = "certificate_file and key_file go together"
        elif self.user is not None and self.sasl_mechanism == "PLAIN" and not self.encrypted:
            message = (
                "PLAIN sends the password as it is: set ca_file, or tls for the system's "
                "certificates, or another sasl_mechanism"
            )
        else:
            refuse_half_login(self.user, self.password, self.password_file)
            return self
        raise ValueError(message)
