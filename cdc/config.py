"""Define, load and check the configuration file, ``wal2lake.yaml``.

Every key can also be set in the environment as ``WAL2LAKE_<SECTION>__<KEY>``, which is meant for
secrets. An error names the key, the line of the file (or the variable) and the remedy, and never
repeats a value that may be a secret.
"""

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar, cast, get_origin
from urllib.parse import urlsplit

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from cdc.errors import CdcError, ErrorKind
from cdc.tables import CONTROL_SCHEMA, SchemaPolicy, TableId, matches

ENV_PREFIX = "WAL2LAKE_"
DEFAULT_FILE = "wal2lake.yaml"


_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
READ_LOST: Final = "read_again"
LostPolicy = Literal["stop", "read_again"]
_Patterns = TypeVar("_Patterns", list[str], dict[str, SchemaPolicy])


class Section(BaseModel):
    """A section of the configuration file.

    The docstrings of sections and keys become the reference, docs/reference/configuration.md.
    """

    # A validation error must not repeat its input, which may be a secret.
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )


class Source(Section):
    """The Postgres database whose tables are copied to the lake."""

    url: str | None = Field(None, repr=False)
    """``postgresql://user@host:port/database``. If absent, an embedded Postgres is started."""
    password: SecretStr | None = None
    """The source's password. Prefer WAL2LAKE_SOURCE__PASSWORD or ``password_file``."""
    password_file: Path | None = None
    """A file that holds the password and nothing else."""
    tables: list[str] = Field(min_length=1)
    """The tables to capture, as patterns ``schema.table``: ``*`` stands for any characters, ``?``
    for one."""
    append_only: list[str] = []
    """Patterns of tables without a key of which only inserts are kept."""
    schema_changes: dict[str, SchemaPolicy] = {}
    """What happens to a lake table when its source columns change, by pattern: ``evolve`` (the
    default) makes the same change; ``ignore`` makes no change for added or dropped columns;
    ``stop`` stops the table. The first matching pattern applies."""

    on_lost_changes: LostPolicy = "stop"
    """What happens if changes are lost (the slot was dropped or lost, the connector's position is
    gone, the first snapshot broke off). ``stop`` (the default): ``up`` fails until it is run with
    ``--new-epoch``, and the tables wait for ``resnapshot``. ``read_again``: ``up`` begins a new
    epoch, and the job reads the tables again, one after the other."""
    read_timeout_seconds: float = Field(900, gt=0)
    """How long ``verify`` or a reading of a table waits for the next row before it considers the
    source unreachable. A condition (``--where``) that few rows meet needs a longer wait."""
    as_text: list[str] = []
    """Patterns ``schema.table.column`` of numeric, date and timestamp columns to keep as Postgres's
    own text, which can also hold NaN, infinity and years outside 1 to 9999. It applies to tables
    that the lake does not have yet."""

    @field_validator("url")
    @classmethod
    def _postgres_url(cls, value: str | None) -> str | None:
        if value is not None and urlsplit(value).scheme not in {"postgresql", "postgres"}:
            message = "must start with postgresql://"
            raise ValueError(message)
        return value

    def schema_policy(self, table: TableId) -> SchemaPolicy:
        """Return what ``schema_changes`` says of the table; ``evolve`` by default."""
        return next(
            (p for name, p in self.schema_changes.items() if matches(table, [name])), "evolve"
        )

    @field_validator("tables", "append_only", "schema_changes")
    @classmethod
    def _patterns(cls, value: _Patterns) -> _Patterns:
        for pattern in value:
            schema, dot, name = pattern.partition(".")
            if not (schema and dot and name):
                message = f"{pattern!r} is not of the form schema.table"
                raise ValueError(message)
            if schema == CONTROL_SCHEMA:
                message = f"{pattern!r} is in the schema of wal2lake's own tables"
                raise ValueError(message)
        return value

    @field_validator("as_text")
    @classmethod
    def _columns(cls, value: list[str]) -> list[str]:
        for pattern in value:
            if len([part for part in pattern.split(".", 2) if part]) < len(("schema", "t", "c")):
                message = f"{pattern!r} is not of the form schema.table.column"
                raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        given = [self.password, self.password_file, self.url and urlsplit(self.url).password]
        if sum(value is not None for value in given) > 1:
            message = "the password is given more than once (url, password, password_file)"
            raise ValueError(message)
        return self


class Kafka(Section):
    """The Kafka broker that holds the change events."""

    bootstrap_servers: str | None = None
    """The brokers as ``host:port,host:port``. If absent, an embedded broker is started."""
    replication_factor: int = Field(1, ge=1)
    """The replication factor of the topics that wal2lake creates."""
    min_compaction_lag_ms: int = Field(86_400_000, ge=0)
    """How long every change event is kept before compaction may reduce a key to its newest one."""
    delete_retention_ms: int = Field(604_800_000, ge=0)
    """How long a tombstone outlives its compaction. Set it longer than the job may ever be down."""


class Connect(Section):
    """The Kafka Connect worker that runs the Debezium connector."""

    url: str | None = Field(None, repr=False)
    """The URL of the worker's REST interface. If absent, an embedded worker is started."""
    user: str | None = None
    """The user for basic authentication at the worker's REST interface."""
    password: SecretStr | None = None
    """The password of ``connect.user``. Prefer WAL2LAKE_CONNECT__PASSWORD or ``password_file``."""
    password_file: Path | None = None
    """A file that holds the password of ``connect.user`` and nothing else."""
    source_password: str | None = Field(None, repr=False)
    """For a worker of your own: the password in the connector's configuration, as a reference to
    one of that worker's config providers, such as ``${file:/run/secrets/pg:password}``."""
    source_url: str | None = None
    """The source's URL as the worker sees it, if it differs from ``source.url`` (containers)."""
    registry_url: str | None = None
    """The registry's URL as the worker sees it, if it differs from ``registry.url``."""

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        given = [value for value in (self.password, self.password_file) if value is not None]
        if self.url is None and (self.user or given):
            message = "user and password belong to a worker at connect.url, which is not set"
        elif len(given) > 1 or (self.user and urlsplit(self.url or "").username):
            message = "the login is given more than once (url, user, password, password_file)"
        elif bool(given) != (self.user is not None):
            message = "user and password (or password_file) go together"
        else:
            return self
        raise ValueError(message)


class Registry(Section):
    """The schema registry that holds the Avro schemas of the change events."""

    url: str | None = None
    """The base URL of an Apicurio registry. If absent, an embedded registry is started."""


class Spark(Section):
    """The Spark session of the job."""

    master: str = "local[*]"
    """``local[*]``, ``local[2]``, or the address of a cluster."""
    driver_memory: str = "2g"
    """The heap of the job's JVM."""
    conf: dict[str, str] = {}
    """Spark settings that override wal2lake's own, except those that govern how SQL is parsed."""


class Lake(Section):
    """The directory of the Delta tables."""

    path: str
    """A directory or object-store URL; each table is at ``<schema>/<table>`` below it."""


class Job(Section):
    """How the job lands and applies events, and looks after the tables."""

    trigger_seconds: float = Field(1.0, ge=0)
    """The shortest time between two micro-batches."""
    max_events_per_batch: int = Field(200_000, ge=1)
    """The most change events in one micro-batch, over all tables."""
    merge_threads: int = Field(2, ge=1)
    """How many tables are merged at the same time."""
    optimize_small_files: int = Field(24, ge=2)
    """A table is optimized once it has at least this many small files to combine, none of them
    larger than twice all the others together."""
    maintain_every_commits: int = Field(16, ge=1)
    """How many commits of a table pass between two counts of its small files."""
    vacuum_retention_hours: float = Field(168, ge=0)
    """How long an old version's files and commits are kept for time travel and slow readers."""
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


class Stack(Section):
    """The embedded servers."""

    ports: dict[str, int] = {}
    """Fixed ports by server (postgres, kafka, registry, connect). Others get a free port."""


class Config(Section):
    """The whole configuration file."""

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


def load(path: Path, environ: Mapping[str, str] | None = None) -> Config:
    """Read the file, merge the environment into it and check the result.

    Relative paths are taken from the file's directory; ``environ`` defaults to ``os.environ``.
    Raises CONFIG with the key, the line and the remedy.
    """
    raw, lines = _read(path)
    merged, variables = _with_environment(raw, os.environ if environ is None else environ)
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        raise _explain(path, error.errors()[0], {**lines, **variables}) from None
    return _absolute(config, path.parent.resolve())


Keys = tuple[str, ...]


def _read(path: Path) -> tuple[dict[str, Any], dict[Keys, str]]:
    """Return the keys of the file, and the place of each (``:line``)."""
    try:
        text = path.read_text()
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        raw = yaml.safe_load(text)
    except FileNotFoundError:
        raise CdcError(
            ErrorKind.CONFIG,
            f"no configuration file {path}",
            remedy="run wal2lake init, or name the file with --config",
        ) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _unreadable(path, error) from None
    if not isinstance(raw, dict):
        raise CdcError(
            ErrorKind.CONFIG,
            f"{path} has no keys",
            remedy="run wal2lake init --force to write a working example",
        )
    return cast("dict[str, Any]", raw), dict(_lines(path, node, ()))


def _unreadable(path: Path, error: Exception) -> CdcError:
    """Explain an error without the excerpt that YAML adds, as the line may hold a password."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return CdcError(
            ErrorKind.CONFIG,
            f"{path}:{error.problem_mark.line + 1}: not YAML: {error.problem}",
            remedy="indent with spaces, and quote values that contain : # * or {",
        )
    reason = error.strerror if isinstance(error, OSError) else "not YAML text in UTF-8"
    return CdcError(ErrorKind.CONFIG, f"{path} cannot be read: {str(reason).lower()}")


def _lines(path: Path, node: yaml.Node | None, above: Keys) -> Iterator[tuple[Keys, str]]:
    """Yield the place of each key and list item; raise CONFIG for a key that is given twice."""
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*above, str(index)), f":{item.start_mark.line + 1}"
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        keys, line = (*above, str(key.value)), key.start_mark.line + 1
        if keys[-1] in seen:
            raise CdcError(
                ErrorKind.CONFIG,
                f"{path}:{line}: {'.'.join(keys)} is given twice",
                remedy="keep one of them",
            )
        seen.add(keys[-1])
        yield keys, f":{line}"
        yield from _lines(path, value, keys)


def _with_environment(
    raw: dict[str, Any], environ: Mapping[str, str]
) -> tuple[dict[str, Any], dict[Keys, str]]:
    """Return the keys overridden by the environment, and the variable of each that it sets."""
    # A section whose every key is commented out reads as null.
    merged = {key: {} if value is None else value for key, value in raw.items()}
    variables: dict[Keys, str] = {}
    for name, text in environ.items():
        keys = _keys_of(name)
        if len(keys) == 1:
            merged[keys[0]] = text
        elif keys:
            section, key = keys
            below = merged.get(section, {})
            if isinstance(below, dict):  # otherwise validation reports the section
                merged[section] = {**below, key: _value(section, key, text)}
        if keys:
            variables[keys] = name
    return merged, variables


def _keys_of(variable: str) -> Keys:
    """Return the keys that an environment variable sets; none if it is not one of wal2lake's."""
    if not variable.startswith(ENV_PREFIX):
        return ()
    name = variable.removeprefix(ENV_PREFIX).lower()
    section, double, key = name.partition("__")
    if double:
        return section, key
    return (name,) if name in {"name", "state_dir"} else ()


def _value(section: str, key: str, text: str) -> Any:  # noqa: ANN401 - what YAML gives
    """Parse a variable: lists separated by commas, mappings as YAML, all else as plain text."""
    field = Config.model_fields.get(section)
    model = field.annotation if field else None
    below = getattr(model, "model_fields", {}).get(key)
    kind = get_origin(below.annotation) if below else None
    if kind is list:
        return [item.strip() for item in text.split(",")]
    if kind is dict:
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError:
            return text  # validation reports that it is not a mapping
    return text


def _explain(path: Path, error: ErrorDetails, places: Mapping[Keys, str]) -> CdcError:
    keys = tuple(str(part) for part in error["loc"])
    depth = next((n for n in range(len(keys), 0, -1) if keys[:n] in places), 0)
    place = places.get(keys[:depth], "")
    where = place if place.startswith(ENV_PREFIX) else f"{path}{place}"
    message, remedy = _message(error, keys)
    return CdcError(ErrorKind.CONFIG, f"{where}: {'.'.join(keys)}: {message}", remedy=remedy)


def _message(error: ErrorDetails, keys: Keys) -> tuple[str, str]:
    reference = "docs/reference/configuration.md"
    match error["type"]:
        case "extra_forbidden":
            near = get_close_matches(keys[-1], _siblings(keys), n=1)
            remedy = f"did you mean {near[0]}?" if near else f"remove it; {reference} lists all"
            return "unknown key", remedy
        case "missing":
            return "missing", f"add it; {reference} explains it"
        case _:
            text = error["msg"].removeprefix("Value error, ")
            return f"{text[:1].lower()}{text[1:]}", f"correct the value; see {reference}"


def _siblings(keys: Keys) -> list[str]:
    """Return the valid keys beside an unknown one."""
    model: Any = Config
    for key in keys[:-1]:
        model = model.model_fields[key].annotation
    return list(model.model_fields)


def _absolute(config: Config, base: Path) -> Config:
    lake = config.lake.path
    if "://" not in lake:
        lake = str(base / Path(lake).expanduser())
    files = {name: getattr(config, name).password_file for name in ("source", "connect")}
    absolute = {name: {"password_file": base / f.expanduser()} for name, f in files.items() if f}
    source = config.source.model_copy(update=absolute.get("source"))
    connect = config.connect.model_copy(update=absolute.get("connect"))
    state_dir = base / config.state_dir.expanduser()
    update = {"lake": Lake(path=lake), "source": source, "connect": connect, "state_dir": state_dir}
    return config.model_copy(update=update)
