"""What the event triggers note of each change, and that the steps made of it are what happened.

The judge is Postgres: rows as they were, taken through the steps, must be the rows it shows now.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import psycopg
import pytest

from cdc.errors import CdcError
from cdc.events.steps import Course, Note, follow
from cdc.events.structure import Structure, parse
from cdc.source import structure_notes
from cdc.source.postgres import Connection, connect
from cdc.source.structure_notes import structure_of
from tests.source.conftest import open_schema
from tests.source.lake_rows import LakeRows, lake_value

pytestmark = pytest.mark.integration

ROWS: Final = "INSERT INTO t VALUES (1, 1, 'x', 1.50), (2, -7, ' y ', NULL), (3, NULL, NULL, 0.10)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A row of ``wal2lake.structure``."""

    command: str
    rewrite: int
    converted: bool
    oid: int
    name: str | None
    text: str | None

    @property
    def note(self) -> Note:
        structure = None if self.text is None else parse(self.text)
        return Note(structure=structure, rewrite=self.rewrite, converted=self.converted)


@dataclass
class Source:
    """One schema of a Postgres that has the triggers."""

    connection: Connection
    schema: str
    seen: int = 0

    def run(self, statement: str, *values: object) -> list[Noted]:
        """The notes of a statement about tables of the schema."""
        self.connection.execute(statement.encode(), values or None)
        return self.notes()

    def notes(self) -> list[Noted]:
        rows = self.connection.execute(
            "SELECT id, command, rewrite, converted, table_oid, table_name, structure"
            " FROM wal2lake.structure WHERE id > %s AND (table_schema = %s OR table_oid = 0)"
            " ORDER BY id",
            (self.seen, self.schema),
        ).fetchall()
        self.seen = max((row[0] for row in rows), default=self.seen)
        names = ("command", "rewrite", "converted", "oid", "name", "text")
        return [Noted(**dict(zip(names, row[1:], strict=True))) for row in rows]

    def structure(self, table: str = "t") -> Structure:
        row = self.connection.execute("SELECT %s::regclass::oid", (table,)).fetchone()
        assert row is not None
        text = structure_of(self.connection, row[0])
        assert text is not None
        return parse(text)

    def rows(self, structure: Structure) -> list[dict[str, Any]]:
        """As the lake would hold them, by what Postgres shows."""
        columns = structure.followed
        shown = "CASE WHEN {0} IS NOT NULL THEN format('%%s', {0}) END"
        listed = ", ".join(shown.format(f'"{column.name}"') for column in columns)
        query = f'SELECT {listed} FROM "{structure.table.schema}"."{structure.table.name}"'
        found = self.connection.execute(query.encode(), ()).fetchall()
        return [
            {c.name: lake_value(text, c.lake) for c, text in zip(columns, row, strict=True)}
            for row in found
        ]


@pytest.fixture(scope="module")
def noting(source_url: str) -> str:
    with connect(source_url) as connection:
        connection.execute(structure_notes.script().encode())
    return source_url


@pytest.fixture
def source(noting: str, schema: str) -> Iterator[Source]:
    with open_schema(noting, schema) as connection:
        found = Source(connection, schema)
        found.notes()
        yield found


def sorted_rows(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def taken(source: Source, statement: str) -> Course:
    """The course that the notes give; where it goes on, it ends at what Postgres shows."""
    before = source.structure()
    lake = LakeRows(source.rows(before), {c.name: c.lake for c in before.followed})
    course = follow(before, [noted.note for noted in source.run(statement)])
    if not course.stops and course.structure is not None:
        for step in course.steps:
            lake.do(step)
        assert sorted_rows(lake.rows) == sorted_rows(source.rows(course.structure))
        now = source.structure(f"{source.schema}.{course.structure.table.name}")
        assert [(c.number, c.name, c.declared) for c in course.structure.columns] == [
            (c.number, c.name, c.declared) for c in now.columns
        ]
    return course


FOLLOWED: Final = {
    "add": ("ALTER TABLE t ADD c text", "AddColumn"),
    "add with a constant": ("ALTER TABLE t ADD c numeric(8, 3) DEFAULT 1.5", "AddColumn"),
    "add with an odd text": ("""ALTER TABLE t ADD c text DEFAULT 'a,"b\\ {}'""", "AddColumn"),
    "add with now()": ("ALTER TABLE t ADD c timestamptz DEFAULT now()", "AddColumn"),
    "add with an array": ("ALTER TABLE t ADD c int[] NOT NULL DEFAULT '{1,NULL,2}'", "AddColumn"),
    "add with bytes": (r"ALTER TABLE t ADD c bytea DEFAULT '\x00ff'", "AddColumn"),
    "add not null": ("ALTER TABLE t ADD c bool NOT NULL DEFAULT false", "AddColumn"),
    "add, then a default": ("ALTER TABLE t ADD c int; ALTER TABLE t ALTER c SET DEFAULT 5", "Add"),
    "default dropped": (
        "ALTER TABLE t ADD c int DEFAULT 5; ALTER TABLE t ALTER c DROP DEFAULT",
        "AddColumn",
    ),
    "volatile, dropped": (
        "ALTER TABLE t ADD c float8 DEFAULT random(); ALTER TABLE t DROP c",
        None,  # the rows are what they were, but nobody knows that at the first note
    ),
    "drop": ("ALTER TABLE t DROP a", "DropColumn"),
    "rename": ("ALTER TABLE t RENAME a TO b", "RenameColumn"),
    "re-add": ("ALTER TABLE t DROP a; ALTER TABLE t ADD a text", "DropColumn AddColumn"),
    "re-add at once": ("ALTER TABLE t DROP a, ADD a date", "DropColumn AddColumn"),
    "swap": (
        "ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME s TO a; ALTER TABLE t RENAME x TO s",
        "RenameColumn RenameColumn RenameColumn",
    ),
    "int to bigint": ("ALTER TABLE t ALTER a TYPE bigint", "WidenColumn"),
    "int to text": ("ALTER TABLE t ALTER a TYPE text", "WidenColumn"),
    "numeric wider": ("ALTER TABLE t ALTER n TYPE numeric(12, 4)", "WidenColumn"),
    "int to smallint": ("ALTER TABLE t ALTER a TYPE smallint", ""),
    "text to varchar": ("ALTER TABLE t ALTER s TYPE varchar", ""),
    "not null": ("ALTER TABLE t ALTER id SET NOT NULL; ALTER TABLE t ALTER a DROP NOT NULL", ""),
    "default": ("ALTER TABLE t ALTER a SET DEFAULT 5", ""),
    "an index and a comment": ("CREATE INDEX ON t (a); COMMENT ON TABLE t IS 'x'", ""),
    "rename the table": ("ALTER TABLE t RENAME TO u", "RenameTable"),
    "another key": (
        "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, k)",
        "ChangeKey",
    ),
    "key dropped and added": (
        "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (id)",
        "",
    ),
    "key dropped, full": (
        "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t REPLICA IDENTITY FULL",
        "ChangeMode",
    ),
    "an index as identity": (
        "ALTER TABLE t ADD u int NOT NULL GENERATED BY DEFAULT AS IDENTITY",
        None,  # numbers for each row
    ),
    "several at once": (
        "ALTER TABLE t DROP s, ALTER a TYPE bigint, ADD c text",
        "DropColumn WidenColumn AddColumn",
    ),
    "generated": ("ALTER TABLE t ADD g int GENERATED ALWAYS AS (a * 2) STORED", ""),
    "a type that does not arrive": ("ALTER TABLE t ADD p point", ""),
    "in a transaction": ("BEGIN; ALTER TABLE t ALTER a TYPE bigint; COMMIT", "WidenColumn"),
    "unlogged and back": ("ALTER TABLE t SET UNLOGGED; ALTER TABLE t SET LOGGED", ""),
    "rewritten": ("VACUUM FULL t", ""),
}


@pytest.mark.parametrize("case", FOLLOWED, ids=lambda case: case.replace(" ", "-"))
def test_a_change_that_is_followed(source: Source, case: str) -> None:
    statement, expected = FOLLOWED[case]
    source.run(
        "CREATE TABLE t (id int PRIMARY KEY, a int, s text, n numeric(8, 2), k int DEFAULT 5)"
    )
    source.run(ROWS)

    course = taken(source, statement)

    if expected is None:
        assert course.stops
    else:
        assert not course.stops
        assert " ".join(type(step).__name__ for step in course.steps).startswith(expected)
        assert expected or not course.steps


STOPPED: Final = {
    "volatile default": ("ALTER TABLE t ADD c float8 DEFAULT random()", "new column c"),
    "identity": ("ALTER TABLE t ADD c int GENERATED ALWAYS AS IDENTITY", "new column c"),
    "constant in a rewrite": ("ALTER TABLE t ADD c int DEFAULT 5, ALTER a TYPE bigint", "column c"),
    "using": ("ALTER TABLE t ALTER a TYPE bigint USING a + 1", "converted by an expression"),
    "using, same type": ("ALTER TABLE t ALTER a TYPE int USING a + 1", "converted by an expr"),
    "text to int": ("ALTER TABLE t ALTER s TYPE int USING length(s)", "converted by an expression"),
    "in a block": ("DO $$ BEGIN ALTER TABLE t ALTER a TYPE bigint; END $$", "by an expression"),
    "dynamic": (
        "DO $$ BEGIN EXECUTE 'ALTER TABLE t ALTER a TYPE int US' || 'ING 5'; END $$ /* alter table",
        "by an expression",
    ),
    "narrow numeric": ("ALTER TABLE t ALTER n TYPE numeric(8, 1)", "column n"),
    "narrow text": ("ALTER TABLE t ALTER s TYPE varchar(5)", "column s"),
    "key dropped": ("ALTER TABLE t DROP CONSTRAINT t_pkey", "has neither a primary key"),
    "identity nothing": ("ALTER TABLE t REPLICA IDENTITY NOTHING", "REPLICA IDENTITY NOTHING"),
    "created again": ("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY)", ""),
}


@pytest.mark.parametrize("case", STOPPED, ids=lambda case: case.replace(" ", "-"))
def test_a_change_that_stops(source: Source, case: str) -> None:
    statement, reason = STOPPED[case]
    source.run(
        "CREATE TABLE t (id int PRIMARY KEY, a int, s text, n numeric(8, 2), k int DEFAULT 5)"
    )
    source.run(ROWS)
    before = source.structure()

    course = follow(before, [noted.note for noted in source.run(statement.partition("/*")[0])])

    if reason:
        assert reason in course.stops[0].reason
    else:
        assert course.structure is None


TYPES: Final = {
    "bool": ("true", "false"),
    "int2": ("-1", "32767"),
    "int4": ("-1", "70000"),
    "int8": ("-1", "9007199254740993"),
    "oid": ("7",),
    "float4": ("0.1", "16777216"),
    "float8": ("0.1", "1e300"),
    "numeric": ("1.500", "NaN", "12345678901234567890.5"),
    "numeric(8,2)": ("1.5", "-0.10"),
    "numeric(6,0)": ("15",),
    "numeric(10,4)": ("1.5",),
    "numeric(45,2)": ("1.5", "12345678901234567890123456789012345678901.25"),
    "numeric(45,4)": ("1.5",),
    "text": ("a      ", "12"),
    "varchar(4)": ("a  ", "12"),
    "varchar(8)": ("a      ", "12"),
    "char(4)": ("a",),
    "char(8)": ("a",),
    "citext": ("Aa", "12"),
    "bit(1)": ("1",),
    "varbit(4)": ("1", "0110"),
    "json": ('{"b":  1}',),
    "jsonb": ('{"b":  1}',),
    "uuid": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",),
    "cidr": ("10.0.0.1/32",),
    "inet": ("10.0.0.1",),
    "date": ("2024-02-29",),
    "timestamp": ("2024-02-29 12:00:00.123456",),
    "timestamp(3)": ("2024-02-29 12:00:00.123",),
    "timestamptz": ("2024-02-29 12:00:00.123456+00",),
    "time": ("12:00:00.123456",),
    "time(0)": ("12:00:01",),
    "interval": ("1 year 02:03:04.5",),
    "interval(0)": ("1 year 02:03:04",),
    "macaddr": ("08:00:2b:01:02:03",),
    "int4range": ("[1,5)",),
    "mood": ("sad",),
    "positive": ("7",),
    "int4[]": ("{1,NULL}",),
    "int8[]": ("{1,NULL}",),
    "text[]": ('{"a b",NULL}',),
}


def test_no_value_is_another_after_a_change_of_type_that_goes_on(source: Source) -> None:
    """Every type to every other that Postgres changes without USING."""
    source.run("CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    source.run("CREATE EXTENSION IF NOT EXISTS citext SCHEMA public")
    went_on = stopped = 0
    for old, values in TYPES.items():
        source.run(f"DROP TABLE IF EXISTS t; CREATE TABLE t (id serial PRIMARY KEY, x {old})")
        for value in values:
            source.run(f"INSERT INTO t (x) VALUES ('{value}')")
        for new in TYPES:
            try:
                with source.connection.transaction(force_rollback=True):
                    course = taken(source, f"ALTER TABLE t ALTER x TYPE {new}")
            except psycopg.Error:
                continue
            went_on, stopped = went_on + (not course.stops), stopped + bool(course.stops)
            assert old != new or not course.steps
    assert went_on > 2 * len(TYPES)
    assert stopped > len(TYPES)


def test_commands_that_make_and_drop_tables(source: Source) -> None:
    assert [n.command for n in source.run("CREATE TABLE t (id int PRIMARY KEY)")] == [
        "CREATE TABLE"
    ]
    (made,) = source.run("CREATE TABLE u AS SELECT 1 AS x, 'y'::text AS y")
    assert made.note.structure is not None
    assert [c.name for c in made.note.structure.columns] == ["x", "y"]
    assert [n.name for n in source.run("SELECT 2 AS z INTO v")] == ["v"]
    (gone,) = source.run("DROP TABLE u")
    assert (gone.command, gone.name, gone.text, gone.oid) == ("DROP TABLE", "u", None, made.oid)
    (again,) = source.run("CREATE TABLE u (x int)")
    assert again.oid != made.oid
    source.run("CREATE VIEW w AS SELECT 1; CREATE TEMP TABLE temporary (x int)")
    source.run("ALTER TABLE temporary ADD y int; DROP TABLE temporary; CREATE SEQUENCE q")
    assert source.notes() == []
    gone_with = source.run(f"DROP SCHEMA {source.schema} CASCADE")
    assert {(n.name, n.text) for n in gone_with} == {("t", None), ("u", None), ("v", None)}


def test_what_changes_tables_by_another_name(source: Source) -> None:
    schema = source.schema
    source.run("CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN d AS int DEFAULT 7")
    source.run("CREATE TYPE pair AS (x int, y int); CREATE TABLE typed OF pair")
    source.run("CREATE TABLE t (id int PRIMARY KEY, m mood, ms mood[], x d, u int NOT NULL)")
    old = source.structure()
    (noted,) = source.run("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
    stops = follow(old, [noted.note]).stops
    assert f"a value of the enum of column m of {schema}.t was renamed" in stops[0].reason
    assert [n.name for n in source.run("ALTER TYPE mood ADD VALUE 'ok'")] == ["t"]
    assert [n.name for n in source.run("ALTER DOMAIN d SET NOT NULL")] == ["t"]
    assert [n.name for n in source.run("ALTER TYPE pair DROP ATTRIBUTE y CASCADE")] == ["typed"]
    assert len(source.structure("typed").columns) == 1
    (noted,) = source.run("DROP TYPE mood CASCADE")
    assert noted.note.structure is not None
    assert [c.name for c in noted.note.structure.columns] == ["id", "x", "u"]
    source.run("CREATE UNIQUE INDEX i ON t (u)")
    (noted,) = source.run("ALTER TABLE t REPLICA IDENTITY USING INDEX i")
    assert noted.note.structure is not None
    assert noted.note.structure.identity_index == ("u",)
    (noted,) = source.run("DROP INDEX i")
    assert noted.note.structure is not None
    assert noted.note.structure.identity_index == ()
    source.run("CREATE SCHEMA moved; ALTER TABLE t SET SCHEMA moved")
    other = Source(source.connection, "moved")
    assert [n.command for n in other.notes()] == ["ALTER TABLE"]
    other.schema = "moved_again"
    assert [n.name for n in other.run("ALTER SCHEMA moved RENAME TO moved_again")] == ["t"]
    assert [n.name for n in other.run("ALTER INDEX moved_again.t RENAME TO u")] == ["u"]
    source.connection.execute("DROP SCHEMA moved_again CASCADE")


def test_partitions_and_children_are_noted_with_their_parents(source: Source) -> None:
    source.run("CREATE TABLE p (id int, k int, PRIMARY KEY (id, k)) PARTITION BY RANGE (k)")
    source.run("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)")
    source.run("CREATE TABLE p2 (id int NOT NULL, k int NOT NULL)")
    source.run("CREATE TABLE child () INHERITS (p2)")
    attached = source.run("ALTER TABLE child NO INHERIT p2")
    assert [n.name for n in attached] == ["child"]
    attached = source.run("ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20)")
    assert [n.name for n in attached] == ["p", "p1", "p2"]
    assert source.structure("p2").key == ("id", "k")
    old = source.structure("p1")
    source.run("INSERT INTO p VALUES (1, 1), (1, 11)")
    notes = source.run("ALTER TABLE p ADD z int DEFAULT 3, ADD v float8 DEFAULT random()")
    assert [(n.name, n.rewrite) for n in notes] == [("p", 0), ("p1", 2), ("p2", 2)]
    assert len(follow(old, [notes[1].note]).stops) == 2
    assert [n.name for n in source.run("ALTER TABLE p DETACH PARTITION p2")] == ["p", "p1"]


def test_what_is_rolled_back_is_not_noted(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY)")
    source.run("BEGIN; ALTER TABLE t ADD a int; ROLLBACK")
    assert source.notes() == []
    source.run("BEGIN; SAVEPOINT s; ALTER TABLE t ADD a int; ROLLBACK TO s")
    (noted,) = source.run("ALTER TABLE t ADD b int; COMMIT")
    assert noted.note.structure == source.structure()


def test_by_every_way_a_statement_can_take(source: Source, noting: str) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int)")
    source.run(
        "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS"
        f" 'ALTER TABLE {source.schema}.t ALTER a TYPE bigint'"
    )
    (noted,) = source.run("SELECT f()")
    assert (noted.rewrite, noted.converted) == (4, True)
    source.connection.execute("ALTER TABLE t ALTER a TYPE int", prepare=True)
    (noted,) = source.notes()
    assert (noted.rewrite, noted.converted) == (4, False)
    (noted,) = source.run("SET session_replication_role = replica; ALTER TABLE t ADD b int")
    assert noted.note.structure == source.structure()
    with connect(
        noting, options="-c search_path=nowhere -c standard_conforming_strings=off"
    ) as odd:
        odd.execute(f"ALTER TABLE {source.schema}.t ALTER a TYPE bigint".encode())
    (noted,) = source.notes()
    assert (noted.rewrite, noted.converted) == (4, False)


def test_by_a_role_that_knows_nothing_of_us(source: Source) -> None:
    source.run("CREATE ROLE developer; GRANT ALL ON SCHEMA app_of_a_developer TO developer")
    source.run("CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t OWNER TO developer")
    source.run("SET datestyle = 'German'; SET timezone = 'Asia/Tokyo'; SET bytea_output = escape")
    source.connection.execute("SET ROLE developer")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        source.connection.execute("SELECT FROM wal2lake.structure")
    source.connection.execute("ALTER TABLE t ADD a timestamptz DEFAULT '2024-02-01 09:00:00+09'")
    source.connection.execute("ALTER TABLE t ADD b bytea DEFAULT '\\x00'; CREATE TABLE u (x int)")
    source.connection.execute("SET wal2lake.rewritten = 'nonsense'; ALTER TABLE t ADD c int")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        source.connection.execute("SELECT wal2lake.note(1::oid, 'x', 0, false)")
    source.connection.execute("RESET ROLE")
    noted = {n.name: n.note.structure for n in source.notes()}
    assert set(noted) == {"t", "u"}
    shown = noted["t"]
    assert shown is not None
    assert [c.missing for c in shown.columns] == [None, "2024-02-01 00:00:00+00", "\\x00", None]


@pytest.fixture
def schema(request: pytest.FixtureRequest) -> str:
    """Of the test, or of the role that it names."""
    developer = request.node.name == "test_by_a_role_that_knows_nothing_of_us"
    return "app_of_a_developer" if developer else "structures"


def test_ddl_goes_on_where_it_cannot_be_noted(source: Source) -> None:
    warnings: list[str] = []
    source.connection.add_notice_handler(lambda d: warnings.append(d.message_primary or ""))
    source.run("CREATE TABLE t (id int PRIMARY KEY)")
    connection = source.connection
    with connection.transaction(force_rollback=True):
        connection.execute("ALTER TABLE wal2lake.structure RENAME TO hidden")
        connection.execute("ALTER TABLE t ADD a int; DROP TABLE t")
    assert any("ALTER TABLE is not noted" in warning for warning in warnings)
    assert any("DROP TABLE is not noted" in warning for warning in warnings)
    with connection.transaction(force_rollback=True):
        connection.execute("DROP FUNCTION wal2lake.describe")
        (noted,) = source.run("ALTER TABLE t ADD a int")
        assert noted.name == "t"
        with pytest.raises(CdcError, match="could not describe"):
            _ = noted.note
        connection.execute("DROP FUNCTION wal2lake.note")
        (noted,) = source.run("ALTER TABLE t ADD b int")
        assert noted.oid == 0
        with pytest.raises(CdcError, match="could not describe"):
            _ = noted.note


def test_old_notes_are_pruned_and_what_a_table_begins_with_is_not(
    source: Source, noting: str
) -> None:
    insert = (
        "INSERT INTO wal2lake.structure (noted_at, command, rewrite, converted, table_oid)"
        " SELECT now(), CASE WHEN n = 1 THEN 'BASELINE' ELSE 'TEST' END, 0, false, 1"
        " FROM generate_series(1, 6000) n"
    )
    source.connection.execute(insert.encode())
    count = "SELECT count(*) FROM wal2lake.structure WHERE command = 'TEST'"
    with connect(noting) as other, other.transaction():
        # A row that somebody holds is left for the next time, and nobody waits.
        other.execute("SELECT FROM wal2lake.structure WHERE command = 'TEST' LIMIT 1 FOR UPDATE")
        source.connection.execute("SET lock_timeout = '2s'; CREATE TABLE t (id int PRIMARY KEY)")
        for _ in range(300):
            source.connection.execute("ALTER TABLE t ALTER id SET STATISTICS 5")
    (left,) = source.connection.execute(count.encode()).fetchone() or (0,)
    assert 4000 < left < 6000
    kept = "SELECT count(*) FROM wal2lake.structure WHERE command = 'BASELINE'"
    assert source.connection.execute(kept.encode()).fetchone() == (1,)
    source.connection.execute("DELETE FROM wal2lake.structure WHERE table_oid = 1")


def test_the_catalogue_says_the_same_at_any_time(
    source: Source, make_catalog: Callable[[Connection, str], dict[str, str]]
) -> None:
    source.run("CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN price AS numeric(8, 2)")
    (noted,) = source.run(
        "CREATE TABLE t (id bigserial PRIMARY KEY, a smallint, n numeric(10, 2), m mood, p price,"
        " v varchar(5), c char(3), g int GENERATED ALWAYS AS (1) STORED, o point, ia int[],"
        ' ma mood[], h text[][], ts timestamptz(3), "Ä b" jsonb)'
    )
    assert noted.note.structure is not None
    assert noted.note.structure == source.structure()
    arriving = {c.name: c.lake for c in noted.note.structure.followed}
    assert arriving == make_catalog(source.connection, source.schema)
    with connect(source_url_of(source)) as connection:
        connection.execute("SET datestyle = 'SQL, DMY'; SET intervalstyle = 'iso_8601'")
        assert structure_of(connection, noted.oid) == noted.text
        assert connection.execute("SHOW datestyle").fetchone() == ("SQL, DMY",)
        assert structure_of(connection, 1) is None
        assert structure_of(connection, 0) is None


def source_url_of(source: Source) -> str:
    info = source.connection.info
    return f"postgresql://{info.user}:{info.password}@{info.host}:{info.port}/{info.dbname}"


@pytest.fixture
def make_catalog(make_config: Any) -> Callable[[Connection, str], dict[str, str]]:  # noqa: ANN401
    from cdc.source.catalog import captured_tables  # noqa: PLC0415

    def made(connection: Connection, schema: str) -> dict[str, str]:
        (table,) = captured_tables(connection, make_config(tables=[f"{schema}.*"]))
        return {c.name: c.type for c in table.columns if c.arrives}

    return made
