"""Define the ``source`` section of the configuration file."""

from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from cdc.config.section import Section
from cdc.tables import CONTROL_SCHEMA, SchemaPolicy, TableId, matches

READ_LOST: Final = "read_again"
COPY: Final = "copy"
LostPolicy = Literal["stop", "read_again"]
_Patterns = TypeVar("_Patterns", list[str], dict[str, SchemaPolicy])
_DOTS: Final = 2  # in schema.table.column
_ColumnPatterns = TypeVar("_ColumnPatterns", list[str], dict[str, "Choice"])
LEAST_SALT: Final = 16  # characters: a shorter one could be guessed from a few hashes


class Truncate(Section):
    """Keep only the beginning of a column's values."""

    truncate: int = Field(ge=1)
    """How many characters are kept."""


Choice = Literal["drop", "hash"] | Truncate
"""What ``source.columns`` does to a column."""


class Source(Section):
    """Says which tables of which Postgres database are copied to the lake, and how."""

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
    snapshot: Literal["copy", "connector"] = "copy"
    """Who reads the tables first. ``copy`` (the default): the job, by COPY into the lake; the
    topics then begin with the changes. ``connector``: the connector, many times as slow, so that
    the topics have every row. It is decided when the pipeline begins; later values change
    nothing."""
    snapshot_readers: int = Field(2, ge=1, le=32)
    """How many sessions read the first snapshot at the same time, with ``snapshot: copy``."""
    snapshot_rows_per_second: int = Field(0, ge=0)
    """How many rows per second these sessions read together at most; 0: no limit."""
    read_timeout_seconds: float = Field(900, gt=0)
    """How long ``verify`` or a reading of a table waits for the next row before it considers the
    source unreachable. A condition (``--where``) that few rows meet needs a longer wait."""
    as_text: list[str] = []
    """Patterns ``schema.table.column`` of numeric, date and timestamp columns to keep as Postgres's
    own text, which can also hold NaN, infinity and years outside 1 to 9999. It applies to tables
    that the lake does not have yet."""
    columns: dict[str, Choice] = {}
    """What is kept of columns, by pattern ``schema.table.column``. ``drop``: nothing. ``hash``: the
    SHA-256 of ``hash_salt`` and the value, as 64 hexadecimal digits. ``truncate: N``: the first N
    characters. The rest reaches neither Kafka nor the lake. ``hash`` and ``truncate`` are for text,
    varchar, char and citext; no column of a key can be named. The first pattern that matches a
    column applies."""
    hash_salt: SecretStr | None = None
    """The secret in front of each value that ``source.columns`` hashes, of 16 characters or more.
    Prefer WAL2LAKE_SOURCE__HASH_SALT or ``hash_salt_file``."""
    hash_salt_file: Path | None = None
    """A file that holds the salt and nothing else."""

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

    @field_validator("as_text", "columns")
    @classmethod
    def _columns(cls, value: _ColumnPatterns) -> _ColumnPatterns:
        for pattern in value:
            if len([part for part in pattern.split(".", _DOTS) if part]) <= _DOTS:
                message = f"{pattern!r} is not of the form schema.table.column"
                raise ValueError(message)
        return value

    @field_validator("columns", mode="before")
    @classmethod
    def _choices(cls, value: Any) -> Any:  # noqa: ANN401 - what YAML gives
        """Refuse other choices in words; a union of types would report each of its members."""
        for pattern, choice in value.items() if isinstance(value, dict) else ():
            number = choice.get("truncate") if isinstance(choice, dict) else None
            if choice not in ("drop", "hash", {"truncate": number}) or number == 0:
                message = f"{pattern!r} takes drop, hash or truncate: N"
                raise ValueError(message)
            if "[" in str(pattern):
                message = f"{pattern!r} has a bracket: patterns know only * and ?"
                raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _one_salt(self) -> Self:
        given = [salt for salt in (self.hash_salt, self.hash_salt_file) if salt is not None]
        if len(given) > 1:
            message = "the salt is given more than once (hash_salt, hash_salt_file)"
            raise ValueError(message)
        if not given and "hash" in self.columns.values():
            message = "columns hashes a column, and hash_salt is missing"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        given = [self.password, self.password_file, self.url and urlsplit(self.url).password]
        if sum(value is not None for value in given) > 1:
            message = "the password is given more than once (url, password, password_file)"
            raise ValueError(message)
        return self
