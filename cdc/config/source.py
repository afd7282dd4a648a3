"""The ``source`` section of the configuration file."""

from pathlib import Path
from typing import Final, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from cdc.config.section import Section
from cdc.tables import CONTROL_SCHEMA, SchemaPolicy, TableId, matches

READ_LOST: Final = "read_again"
COPY: Final = "copy"
LostPolicy = Literal["stop", "read_again"]
_Patterns = TypeVar("_Patterns", list[str], dict[str, SchemaPolicy])


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
