"""The one configuration file, ``wal2lake.yaml``: its keys, its checks, its errors.

Every key can also come from the environment as ``WAL2LAKE_<SECTION>__<KEY>``, which is how
secrets arrive. An error names the key, the line of the file and the remedy.
"""

import os
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from cdc.errors import CdcError, ErrorKind

ENV_PREFIX = "WAL2LAKE_"
DEFAULT_FILE = "wal2lake.yaml"


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(Section):
    """The Postgres database whose tables are kept."""

    url: str | None = None
    """``postgresql://user@host:port/database``; absent: an embedded Postgres is started."""
    password: SecretStr | None = None
    """Better given by WAL2LAKE_SOURCE__PASSWORD or ``password_file``."""
    password_file: Path | None = None
    tables: list[str] = Field(min_length=1)
    """Patterns ``schema.table``."""
    append_only: list[str] = []
    """Patterns of tables without a key that are kept as inserts only, by explicit choice."""

    @field_validator("url")
    @classmethod
    def _postgres_url(cls, value: str | None) -> str | None:
        if value is not None and urlsplit(value).scheme not in {"postgresql", "postgres"}:
            message = "must start with postgresql://"
            raise ValueError(message)
        return value

    @field_validator("tables", "append_only")
    @classmethod
    def _patterns(cls, value: list[str]) -> list[str]:
        for pattern in value:
            schema, dot, name = pattern.partition(".")
            if not (schema and dot and name):
                message = f"{pattern!r} is not of the form schema.table"
                raise ValueError(message)
        return value


class Kafka(Section):
    bootstrap_servers: str | None = None
    """Absent: an embedded broker."""
    replication_factor: int = Field(1, ge=1)
    min_compaction_lag_ms: int = Field(86_400_000, ge=0)
    delete_retention_ms: int = Field(604_800_000, ge=0)
    """How long a tombstone outlives its compaction: longer than the job may ever be down."""


class Connect(Section):
    url: str | None = None
    """Absent: an embedded worker."""
    source_password: str | None = None
    """What the connector's configuration holds as password, for a worker that is not embedded:
    usually a reference to a config provider of that worker, ``${file:/run/secrets/pg:password}``."""
    source_url: str | None = None
    """How the worker reaches the source where that differs from ``source.url`` (containers)."""
    registry_url: str | None = None
    """How the worker reaches the registry where that differs from ``registry.url``."""


class Registry(Section):
    url: str | None = None
    """Base of an Apicurio registry; absent: an embedded one."""


class Spark(Section):
    master: str = "local[*]"
    driver_memory: str = "2g"
    conf: dict[str, str] = {}
    """Settings that win over ours."""


class Lake(Section):
    path: str
    """Directory or object-store URL under which ``<schema>/<table>`` lie."""


class Job(Section):
    trigger_seconds: float = Field(0.5, ge=0)
    """Least time between two micro-batches."""
    max_events_per_batch: int = Field(200_000, ge=1)
    merge_threads: int = Field(2, ge=1)
    optimize_small_files: int = Field(24, ge=2)
    """A table is optimized when it has at least this many small files."""
    vacuum_retention_hours: float = Field(168, ge=0)
    log_retention_days: float | None = Field(None, gt=0)


class Stack(Section):
    ports: dict[str, int] = {}
    """Fixed ports by server (postgres, kafka, registry, connect); others are chosen free."""


class Config(Section):
    """The whole file."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")] = "wal2lake"
    """Names the slot, the publication, the connector and the prefix of the topics."""
    source: Source
    lake: Lake
    kafka: Kafka = Kafka()
    connect: Connect = Connect()
    registry: Registry = Registry()
    spark: Spark = Spark()
    job: Job = Job()
    stack: Stack = Stack()
    state_dir: Path = Path(".wal2lake")
    """Everything the embedded servers and the job keep, but for the lake."""


def load(path: Path, environ: dict[str, str] | None = None) -> Config:
    """Read, merge with the environment, check; relative paths are relative to the file.

    Raises CONFIG naming the key, the line and the remedy.
    """
    raw = _read(path)
    merged = _with_environment(raw, os.environ if environ is None else environ)
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        raise _explain(path, error) from None
    return _absolute(config, path.parent.resolve())


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise CdcError(
            ErrorKind.CONFIG,
            f"no configuration file {path}",
            remedy="run wal2lake init, or name one with --config",
        ) from None
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CdcError(ErrorKind.CONFIG, f"{path} is not YAML", detail=str(error)) from None
    if not isinstance(raw, dict):
        raise CdcError(
            ErrorKind.CONFIG,
            f"{path} has no keys",
            remedy="run wal2lake init to see one that works",
        )
    return cast("dict[str, Any]", raw)


def _with_environment(raw: dict[str, Any], environ: Any) -> dict[str, Any]:  # noqa: ANN401 - Mapping
    merged = dict(raw)
    for name, value in environ.items():
        section, sep, key = name.removeprefix(ENV_PREFIX).lower().partition("__")
        if name.startswith(ENV_PREFIX) and sep:
            merged[section] = {**(merged.get(section) or {}), key: value}
    return merged


def _explain(path: Path, error: ValidationError) -> CdcError:
    first = error.errors()[0]
    keys = [str(part) for part in first["loc"]]
    remedy = (
        f"remove it, or see the keys in docs/reference/configuration.md"
        if first["type"] == "extra_forbidden"
        else "correct the value"
        if first["type"] != "missing"
        else "add it"
    )
    where = f"{path}:{line}" if (line := _line_of(path, keys)) else str(path)
    return CdcError(
        ErrorKind.CONFIG, f"{where}: {'.'.join(keys)}: {first['msg'].lower()}", remedy=remedy
    )


def _line_of(path: Path, keys: list[str]) -> int | None:
    """The line of the deepest part of ``keys`` that the file has; None for an empty file."""
    node = yaml.compose(path.read_text())
    line = None
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            break
        found = [(k, v) for k, v in node.value if k.value == key]
        if not found:
            break
        line, node = found[0][0].start_mark.line + 1, found[0][1]
    return line


def _absolute(config: Config, base: Path) -> Config:
    lake = config.lake.path
    if "://" not in lake:
        lake = str(base / lake)
    return config.model_copy(
        update={"lake": Lake(path=lake), "state_dir": base / config.state_dir}
    )
