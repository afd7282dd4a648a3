"""Define the configuration file as a whole, and those sections that have no module of their own."""

import re
from pathlib import Path
from typing import Final, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from cdc.config.derived import Derived
from cdc.config.kafka import Kafka
from cdc.config.section import (
    Section,
    refuse_login_in_url,
    refuse_unfit_access,
)
from cdc.config.source import Source

_PORTS: Final = 2**16
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"[\w.=-]+(/[\w.=-]+)*", re.ASCII)


class Connect(Section):
    """Describes the Kafka Connect worker that runs the Debezium connector."""

    url: str | None = Field(None, repr=False)
    """The URL of the worker's REST interface. If absent, an embedded worker is started."""
    user: str | None = None
    """The user for basic authentication at the worker's REST interface."""
    password: SecretStr | None = None
    """The password of ``connect.user``. Prefer WAL2LAKE_CONNECT__PASSWORD or ``password_file``."""
    password_file: Path | None = None
    """A file that holds the password of ``connect.user`` and nothing else."""
    ca_file: Path | None = None
    """The CA certificates to trust at an ``https`` URL, in PEM. If absent, those of the system."""
    source_password: str | None = Field(None, repr=False)
    """For a worker of your own: the password in the connector's configuration, as a reference to
    one of that worker's config providers, such as ``${file:/run/secrets/pg:password}``."""
    hash_salt: str | None = Field(None, repr=False)
    """For a worker of your own: ``source.hash_salt`` in the connector's configuration, as such a
    reference. It is required where ``source.columns`` hashes a column."""
    source_url: str | None = None
    """The source's URL as the worker sees it, if it differs from ``source.url`` (containers)."""
    registry_url: str | None = None
    """The registry's URL as the worker sees it, if it differs from ``registry.url``."""
    registry_password: str | None = Field(None, repr=False)
    """For a worker of your own: the password of ``registry.user``, as a reference to one of that
    worker's config providers, such as ``${file:/run/secrets/registry:password}``."""
    registry_ca_file: str | None = None
    """The path of ``registry.ca_file`` as the worker sees it, if it differs."""

    @field_validator("registry_url")
    @classmethod
    def _without_login(cls, value: str | None) -> str | None:
        refuse_login_in_url(value)
        return value

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        refuse_unfit_access("a worker at connect.url", self)
        if self.registry_password and not self.registry_password.startswith("${"):
            message = (
                "registry_password must be a reference, such as ${file:/run/secrets/r:password}"
            )
            raise ValueError(message)
        return self


class Registry(Section):
    """Says how to reach the schema registry that holds the Avro schemas of the change events."""

    url: str | None = Field(None, repr=False)
    """The base URL of an Apicurio registry. If absent, an embedded registry is started."""
    user: str | None = None
    """The user for basic authentication at the registry."""
    password: SecretStr | None = None
    """The password of ``registry.user``. Prefer WAL2LAKE_REGISTRY__PASSWORD or
    ``password_file``."""
    password_file: Path | None = None
    """A file that holds the password of ``registry.user`` and nothing else."""
    ca_file: Path | None = None
    """The CA certificates to trust at an ``https`` URL, in PEM. If absent, those of the system."""

    @field_validator("url")
    @classmethod
    def _without_login(cls, value: str | None) -> str | None:
        refuse_login_in_url(value)
        return value

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        refuse_unfit_access("a registry at registry.url", self)
        return self


class Spark(Section):
    """Configures the Spark session of the job."""

    master: str = "local[*]"
    """``local[*]``, ``local[2]``, or the address of a cluster."""
    driver_memory: str = "2g"
    """The heap of the job's JVM."""
    conf: dict[str, str] = {}
    """Spark settings that override wal2lake's own, except those that govern how SQL is parsed."""


class Lake(Section):
    """Says where the Delta tables are."""

    path: str
    """A directory, or ``s3://bucket/prefix``; each table is at ``<schema>/<table>`` below it."""

    @field_validator("path")
    @classmethod
    def _place_that_is_known(cls, value: str) -> str:
        """Return an object store's path as all its readers know it: ``s3a://bucket/prefix``."""
        scheme, is_url, rest = value.partition("://")
        if not is_url:
            return value
        bucket, _, prefix = rest.strip("/").partition("/")
        if scheme not in {"s3", "s3a"}:
            raise ValueError(f"is in a store of the kind {scheme}; it must be a directory or in s3")
        if not (_BUCKET.fullmatch(bucket) and _PREFIX.fullmatch(prefix)):
            message = (
                "must be s3://bucket/prefix, of letters, digits and . _ = / -, without credentials"
            )
            raise ValueError(message)
        return f"s3a://{bucket}/{prefix}"


class Job(Section):
    """Says how the job lands and applies events, and how it looks after the tables."""

    freshness_seconds: float = Field(1.0, gt=0)
    """How soon after its commit in the source a change is to be readable. The job lands and
    commits as often as that takes and no more often; ``wal2lake status`` shows what is reached."""
    max_events_per_batch: int = Field(200_000, ge=1)
    """The most change events in one micro-batch, over all tables."""
    merge_threads: int = Field(2, ge=1)
    """How many tables are merged at the same time."""
    local_events: int = Field(20_000, ge=0)
    """The most events of one table in a round that the job applies in its own process, without
    Spark. Larger batches, and those that need Spark for another reason, are merged by Spark. 0
    leaves all of them to Spark."""
    cross_check: int = Field(0, ge=0)
    """Applies one in so many of each table's batches by Spark as well, beside the table, and stops
    the table if the two results differ. 1 compares every batch, 0 none."""
    index_memory_mb: int = Field(256, ge=1)
    """The memory for the index of the tables' keys, over all tables, in MiB. What does not fit is
    kept in ``state_dir``."""
    optimize_small_files: int = Field(24, ge=2)
    """A table is optimized once it has at least this many small files to combine, none of them
    larger than twice all the others together."""
    maintain_every_commits: int = Field(16, ge=1)
    """How many commits of a table pass between two counts of its small files."""
    vacuum_retention_hours: float | None = Field(None, ge=0)
    """How long an old version's files and commits are kept for time travel and slow readers. If
    absent, a quarter of an hour, and up to a week in a table that has no more than 3,600 versions
    in that time."""
    vacuum_every_hours: float = Field(12, gt=0)
    """The time between two searches for files that no kept version needs, while the job runs."""
    log_retention_hours: float | None = Field(None, gt=0)
    """How long every cut can be replayed. Older events of the log and older cuts are deleted; a
    table whose last reading or image is older is first replayed to an image. If absent, everything
    is kept."""
    transaction_alarm_seconds: float = Field(60, gt=0)
    """An alarm is raised for a committed transaction if some of its events are missing and none
    has landed for this long, because no cut can pass it."""
    quarantine_limit_share: float = Field(0.1, ge=0, le=1)
    """The largest share of one table's events in a batch that may be refused, once more than
    ``job.quarantine_limit_run`` are. A batch is what one commit of the table applies. A larger
    share stops the table before any event of the batch is written or put into quarantine."""
    quarantine_limit_run: int = Field(1000, ge=1)
    """The most events of one table that a batch may refuse in a row, without an accepted one
    between them. A longer run stops the table in the same way. A batch with no more refused events
    than this never stops it, whatever their share."""

    @property
    def trigger_seconds(self) -> float:
        """Return the shortest time between two micro-batches.

        A change waits for half of it on average, and the rest of the way takes time as well. Each
        micro-batch has a price, however few changes it holds: so there are no more than are needed.
        """
        return self.freshness_seconds / 2.5


class Monitor(Section):
    """Says where the job serves /metrics, /healthz, /readyz and /status.json, by HTTP."""

    listen: str = "127.0.0.1:0"
    """The address and port of the pages; with port 0 any free one, which ``wal2lake status`` names.
    Whoever reaches it can read names of tables, positions and messages, but no values. If empty,
    there are no pages."""

    @field_validator("listen")
    @classmethod
    def _host_and_port(cls, value: str) -> str:
        host, _, port = value.rpartition(":")
        if value and not (host and port.isdecimal() and int(port) < _PORTS):
            raise ValueError("must be an address and a port, such as 127.0.0.1:9464")
        return value


class Stack(Section):
    """Sets the ports of the embedded servers."""

    ports: dict[str, int] = {}
    """Fixed ports by server (postgres, kafka, registry, connect). Others get a free port."""


class Config(Section):
    """Holds the whole configuration file."""

    name: str = "wal2lake"
    """The name of the slot, the publication and the connector, and the prefix of the topics: a
    lower-case letter, then up to 39 lower-case letters, digits or ``_``."""
    source: Source
    lake: Lake
    kafka: Kafka = Kafka()
    connect: Connect = Connect()
    registry: Registry = Registry()
    spark: Spark = Spark()
    job: Job = Job()
    derived: Derived = Derived()
    monitor: Monitor = Monitor()
    stack: Stack = Stack()
    state_dir: Path = Path(".wal2lake")
    """The directory for everything except the lake that the embedded servers and the job keep."""

    @field_validator("name")
    @classmethod
    def _name_of_a_slot(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            message = (
                "must begin with a lower-case letter, followed by up to 39 lower-case letters, "
                "digits or _, so that it can name a replication slot"
            )
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _the_connector_can_log_in(self) -> Self:
        """Refuse a registry's login that only a secret in the connector's settings could give."""
        if self.connect.url and self.registry.user and not self.connect.registry_password:
            message = (
                "connect.registry_password is missing: the connector logs in at the registry too, "
                "by a reference that the worker at connect.url resolves"
            )
            raise ValueError(message)
        if self.connect.registry_password and not self.registry.user:
            message = "connect.registry_password is set, but registry.user is not"
            raise ValueError(message)
        return self
