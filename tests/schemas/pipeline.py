"""Runs one random database and its pipeline, on servers shared with others."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

import psycopg
import yaml

from cdc.source.connector import worker_rest
from tests.e2e.installation import Installation
from tests.servers.server import Server
from tests.soak.schema.facts import Statement, identifier
from tests.soak.schema.session import Session
from tests.soak.schema.tally import Tally
from tests.waiting import until

LOCK_SECONDS: Final = 10
EVERY: Final = "*.*"
_RELATIONS: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ({kinds}) AND n.nspname !~ '^pg_'
   AND n.nspname NOT IN ('information_schema', 'wal2lake') ORDER BY c.oid"""
_SLOTS_IN_USE: Final = "SELECT 1 FROM pg_replication_slots WHERE database = %s AND active"
_DROP_SLOTS: Final = """
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s"""

Finding = dict[str, str]
Name = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """Makes one of several databases of a server a source of its own."""

    server: Server
    name: str

    @property
    def address(self) -> str:
        return urlsplit(self.server.address)._replace(path=f"/{self.name}").geturl()

    def start(self) -> str:
        self.server.start()
        return self.address

    def stop(self) -> None:
        self.server.stop()

    def kill(self) -> None:
        self.server.kill()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Sorts the tables by the outcome of ``check``."""

    captured: tuple[str, ...]
    appended: tuple[str, ...]
    """The captured tables that are kept as inserts only."""
    refused: Mapping[str, str]
    """The refused tables, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    installation: Installation
    name: str
    statements: list[str]
    tally: Tally

    @classmethod
    def write(
        cls, folder: Path, servers: Mapping[str, Server], worker: Mapping[str, str], *, name: str
    ) -> Self:
        source = Database(server=servers["postgres"], name=name)
        installation = Installation.write(folder, {**servers, "postgres": source}, worker)
        found = cls(installation=installation, name=name, statements=[], tally=Tally())
        found._configure()
        return found

    def create(self, statements: list[str]) -> None:
        """Create the database and run each statement; count those that Postgres refuses."""
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.name}".encode())
        session = self.session()
        with session.connection:
            self.statements.extend(
                sql for sql in statements if session.attempt(Statement(kind=_kind(sql), sql=sql))
            )

    def session(self) -> Session:
        url = self.installation.source_url
        return Session.open(url, self.tally, lock_seconds=LOCK_SECONDS)

    def judge(self) -> Judged:
        """Name the tables one by one in the configuration, except those that ``check`` refuses.

        A name that is not refused contains no pattern characters, so it is its own pattern. A table
        without a key is kept as inserts only, as ``check`` proposes.
        """
        names = self._tables()
        self._configure(tables=[EVERY], append_only=[])
        refused = _by_table(self._errors(), names)
        keyless = [name for name, found in refused.items() if all(map(_lacks_key, found))]
        captured = [name for name in names if name not in refused or name in keyless]
        captured = [name for name in captured if name not in self._roots()]
        plain = [".".join(name) for name in captured]
        kept_so = [".".join(name) for name in keyless]
        self._configure(tables=plain, append_only=kept_so)
        left = self._errors()
        assert left == [], f"check still refuses after its refused tables were left out: {left}"
        return Judged(
            captured=tuple(plain),
            appended=tuple(kept_so),
            refused={
                ".".join(name): "; ".join(finding["message"] for finding in found)
                for name, found in refused.items()
                if name not in keyless
            },
        )

    def _errors(self) -> list[Finding]:
        return [finding for finding in self.check() if finding["level"] == "error"]

    def check(self) -> list[Finding]:
        printed = self.installation.done("check", "--json")
        assert printed.returncode in {0, 5}, printed.stderr
        text = printed.stdout
        found: list[Finding] = json.loads(text[text.index("[") : text.rindex("]") + 1])
        return found

    def made_of(self, table: str) -> list[str]:
        """Return the statements that name the table, to repeat a failure by hand."""
        schema, _, name = table.partition(".")
        quoted = f"{identifier(schema)}.{identifier(name)}"
        return [sql for sql in self.statements if quoted in sql]

    def remove(self) -> None:
        """Remove the pipeline and the database, so that the next one has the servers for itself."""
        self.installation.run("down")
        worker_rest.delete(self.installation.servers["connect"].address, self.name)
        with psycopg.connect(self._server, autocommit=True) as connection:
            until(lambda: not self._slots_in_use(connection))
            connection.execute(_DROP_SLOTS.encode(), (self.name,))
            connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)".encode())

    def _slots_in_use(self, connection: psycopg.Connection[tuple[Any, ...]]) -> bool:
        return connection.execute(_SLOTS_IN_USE.encode(), (self.name,)).fetchone() is not None

    @property
    def _server(self) -> str:
        source = self.installation.servers["postgres"]
        assert isinstance(source, Database)
        return source.server.address

    def _tables(self) -> list[Name]:
        """Return the tables in the order of creation, including partition roots."""
        return self._asked(_RELATIONS.format(kinds="'r', 'p'"))

    def _roots(self) -> list[Name]:
        return self._asked(_RELATIONS.format(kinds="'p'"))

    def _asked(self, query: str) -> list[Name]:
        with self.installation.connect() as connection:
            return [(schema, name) for schema, name in connection.execute(query.encode())]

    def _configure(self, **keys: Any) -> None:  # noqa: ANN401 - YAML's
        """Set keys of the section ``source`` in the configuration."""
        path = self.installation.folder / "wal2lake.yaml"
        written: dict[str, Any] = yaml.safe_load(path.read_text())
        written["source"] |= keys
        path.write_text(yaml.safe_dump(written | {"name": self.name}))


def _kind(sql: str) -> str:
    return " ".join(sql.split()[:2])


def _lacks_key(finding: Finding) -> bool:
    return "name it in source.append_only" in finding["remedy"]


def _by_table(findings: list[Finding], names: list[Name]) -> dict[Name, list[Finding]]:
    """Group findings by the longest table name that begins their subject (a table or column)."""
    found: dict[Name, list[Finding]] = {}
    for finding in findings:
        subject = finding["subject"]
        about = [name for name in names if f"{subject}.".startswith(f"{'.'.join(name)}.")]
        assert about, f"check names something that is no table: {finding}"
        found.setdefault(max(about, key=lambda name: len(".".join(name))), []).append(finding)
    return found
