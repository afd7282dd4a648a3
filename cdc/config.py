"""The one configuration file, ``wal2lake.yaml``: its keys, its checks, its errors.

Every key can also come from the environment, ``WAL2LAKE_<SECTION>__<KEY>``, which is how secrets
arrive. An error names the key, the line of the file (or the variable) and the remedy, and never
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
    # The docstrings under the keys are the reference (docs/reference/configuration.md).
    # An error of the check must not repeat its input, which may be a secret.
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )


class Source(Section):
    """The Postgres database whose tables are kept."""

    url: str | None = Field(None, repr=False)
    """``postgresql://user@host:port/database``; absent: an embedded Postgres is started."""
    password: SecretStr | None = None
    """Better given by WAL2LAKE_SOURCE__PASSWORD or ``password_file``."""
    password_file: Path | None = None
    """A file that holds the password and nothing else."""
    tables: list[str] = Field(min_length=1)
    """Patterns ``schema.table``; ``*`` and ``?`` stand for any characters."""
    append_only: list[str] = []
    """Patterns of tables without a key that are kept as inserts only, by explicit choice."""
    schema_changes: dict[str, SchemaPolicy] = {}
    """By pattern, what becomes of the lake's table when its columns change: ``evolve`` (they change
    too; the default), ``ignore`` (columns that are added or dropped later change nothing), ``stop``
    (the table stops). The first pattern that names a table counts."""

    on_lost_changes: LostPolicy = "stop"
    """What happens where changes are in no log any more (the slot is dropped or lost, the position
    is gone, a first snapshot broke off): ``stop`` (``up`` refuses until it is told ``--new-epoch``,
    and tables wait for ``resnapshot``; the default), ``read_again`` (``up`` begins a new epoch, and
    the job reads the tables again, one after the other)."""
    read_timeout_seconds: float = Field(900, gt=0)
    """How long a reading of a table, or ``verify``, waits for the next row of the source before it
    takes the source for gone. A condition (``--where``) that few rows meet makes it wait long."""
    as_text: list[str] = []
    """Patterns ``schema.table.column`` of numeric, date and timestamp columns that are kept as
    Postgres's own text, with NaN, infinity and years outside 1 to 9999. It counts for a table
    that the lake does not have yet."""

    @field_validator("url")
    @classmethod
    def _postgres_url(cls, value: str | None) -> str | None:
        if value is not None and urlsplit(value).scheme not in {"postgresql", "postgres"}:
            message = "must start with postgresql://"
            raise ValueError(message)
        return value

    def schema_policy(self, table: TableId) -> SchemaPolicy:
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
    bootstrap_servers: str | None = None
    """Absent: an embedded broker."""
    replication_factor: int = Field(1, ge=1)
    """Of the topics that wal2lake creates."""
    min_compaction_lag_ms: int = Field(86_400_000, ge=0)
    """How long every change event is kept before compaction may leave only the newest of a key."""
    delete_retention_ms: int = Field(604_800_000, ge=0)
    """How long a tombstone outlives its compaction: longer than the job may ever be down."""


class Connect(Section):
    url: str | None = Field(None, repr=False)
    """Absent: an embedded worker."""
    user: str | None = None
    """Of the worker's REST interface, where it asks for basic authentication."""
    password: SecretStr | None = None
    """Of ``connect.user``; better given by WAL2LAKE_CONNECT__PASSWORD or ``password_file``."""
    password_file: Path | None = None
    """A file that holds that password and nothing else."""
    source_password: str | None = Field(None, repr=False)
    """What the connector's configuration holds as password, for a worker that is not embedded:
    a reference to a config provider of that worker, ``${file:/run/secrets/pg:password}``."""
    source_url: str | None = None
    """How the worker reaches the source where that differs from ``source.url`` (containers)."""
    registry_url: str | None = None
    """How the worker reaches the registry where that differs from ``registry.url``."""

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        given = [value for value in (self.password, self.password_file) if value is not None]
        if self.url is None and (self.user or given):
            message = "user and password are of the worker at connect.url, and there is none"
        elif len(given) > 1 or (self.user and urlsplit(self.url or "").username):
            message = "the login is given more than once (url, user, password, password_file)"
        elif bool(given) != (self.user is not None):
            message = "user and password (or password_file) go together"
        else:
            return self
        raise ValueError(message)


class Registry(Section):
    url: str | None = None
    """Base of an Apicurio registry; absent: an embedded one."""


class Spark(Section):
    master: str = "local[*]"
    """``local[*]``, ``local[2]``, or the address of a cluster."""
    driver_memory: str = "2g"
    """Heap of the job."""
    conf: dict[str, str] = {}
    """Settings that win over ours, but for those of how SQL is read."""


class Lake(Section):
    path: str
    """Directory or object-store URL under which ``<schema>/<table>`` lie."""


class Job(Section):
    trigger_seconds: float = Field(1.0, ge=0)
    """Least time between two micro-batches."""
    max_events_per_batch: int = Field(200_000, ge=1)
    """Most change events of one micro-batch, over all tables."""
    merge_threads: int = Field(2, ge=1)
    """Tables merged at the same time."""
    optimize_small_files: int = Field(24, ge=2)
    """A table is optimized when at least this many small files of it go together, of which none is
    larger than twice all others."""
    maintain_every_commits: int = Field(16, ge=1)
    """Commits of a table between two counts of its small files."""
    vacuum_retention_hours: float = Field(168, ge=0)
    """How long time travel and slow readers find an old version: its files, and its commits."""
    vacuum_every_hours: float = Field(12, gt=0)
    """Time between two looks for files that no kept version needs, while the job runs."""
    log_retention_hours: float | None = Field(None, gt=0)
    """How long every cut can be replayed. Older events of the log and older cuts are given up, and
    a table of which none is newer is replayed to an image before that. Without it all are kept."""
    transaction_alarm_seconds: float = Field(60, gt=0)
    """An alarm is raised when a transaction has ended, some of its events have not landed, and
    none has for that long: no cut can pass it."""
    quarantine_limit_share: float = Field(0.1, ge=0, le=1)
    """Largest share of a batch's events of one table that may be refused, where more than
    ``job.quarantine_limit_run`` are. A batch is what one commit of the table applies; one with a
    larger share stops the table before anything of it is written or put into quarantine."""
    quarantine_limit_run: int = Field(1000, ge=1)
    """Most events of one table that a batch may refuse in a row, with none between them that is
    kept; more stop the table likewise. No more than that are never too many, whatever their
    share."""


class Stack(Section):
    ports: dict[str, int] = {}
    """Fixed ports by server (postgres, kafka, registry, connect); others are chosen free."""


class Config(Section):
    """The whole file."""

    name: str = "wal2lake"
    """Names the slot, the publication, the connector and the prefix of the topics: a lower-case
    letter, then up to 39 lower-case letters, digits or ``_``."""
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

    @field_validator("name")
    @classmethod
    def _name_of_a_slot(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            message = (
                "must begin with a lower-case letter and go on with lower-case letters, digits "
                "or _, 40 characters at most: Postgres takes no other name for a slot"
            )
            raise ValueError(message)
        return value


def load(path: Path, environ: Mapping[str, str] | None = None) -> Config:
    """Read, merge with the environment, check; relative paths are relative to the file.

    Raises CONFIG naming the key, the line and the remedy.
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
    """The keys of the file, and where each stands (``:line``)."""
    try:
        text = path.read_text()
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        raw = yaml.safe_load(text)
    except FileNotFoundError:
        raise CdcError(
            ErrorKind.CONFIG,
            f"no configuration file {path}",
            remedy="run wal2lake init, or name one with --config",
        ) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _unreadable(path, error) from None
    if not isinstance(raw, dict):
        raise CdcError(
            ErrorKind.CONFIG,
            f"{path} has no keys",
            remedy="run wal2lake init --force to see a file that works",
        )
    return cast("dict[str, Any]", raw), dict(_lines(path, node, ()))


def _unreadable(path: Path, error: Exception) -> CdcError:
    """Without the excerpt that YAML errors carry: the line may hold a password."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return CdcError(
            ErrorKind.CONFIG,
            f"{path}:{error.problem_mark.line + 1}: not YAML: {error.problem}",
            remedy="indent with spaces, and quote values that hold : # * or {",
        )
    reason = error.strerror if isinstance(error, OSError) else "not YAML text in UTF-8"
    return CdcError(ErrorKind.CONFIG, f"{path} cannot be read: {str(reason).lower()}")


def _lines(path: Path, node: yaml.Node | None, above: Keys) -> Iterator[tuple[Keys, str]]:
    """Where each key and list item stands; raises CONFIG for a key given twice."""
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
    """The keys with those of the environment over them, and the variable of each of these."""
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
            if isinstance(below, dict):  # else the check says that the section is wrong
                merged[section] = {**below, key: _value(section, key, text)}
        if keys:
            variables[keys] = name
    return merged, variables


def _keys_of(variable: str) -> Keys:
    """The keys that an environment variable sets; none for variables that are not ours."""
    if not variable.startswith(ENV_PREFIX):
        return ()
    name = variable.removeprefix(ENV_PREFIX).lower()
    section, double, key = name.partition("__")
    if double:
        return section, key
    return (name,) if name in {"name", "state_dir"} else ()


def _value(section: str, key: str, text: str) -> Any:  # noqa: ANN401 - what YAML gives
    """Lists come separated by commas, mappings as YAML; everything else is the text itself."""
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
            return text  # and the check says that it is no mapping
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
            remedy = f"did you mean {near[0]}?" if near else f"remove it; {reference} has the keys"
            return "unknown key", remedy
        case "missing":
            return "missing", f"add it; {reference} says what it means"
        case _:
            text = error["msg"].removeprefix("Value error, ")
            return f"{text[:1].lower()}{text[1:]}", f"correct the value; see {reference}"


def _siblings(keys: Keys) -> list[str]:
    """The keys that there are at the place of an unknown one."""
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
