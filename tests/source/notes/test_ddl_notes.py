"""Test what the event triggers note of each change, whoever makes it and however."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from cdc.errors import CdcError
from cdc.events.structure.derive_steps import derive_course
from cdc.source.catalog.captured import captured_tables
from cdc.source.notes.triggers import structure_of
from cdc.source.server.connection import Connection, connect
from tests.source.noting import Source

pytestmark = pytest.mark.integration


def test_commands_that_make_and_drop_tables(noting: Source) -> None:
    assert [n.command for n in noting.run("CREATE TABLE t (id int PRIMARY KEY)")] == [
        "CREATE TABLE"
    ]
    (made,) = noting.run("CREATE TABLE u AS SELECT 1 AS x, 'y'::text AS y")
    assert made.note.structure is not None
    assert [c.name for c in made.note.structure.columns] == ["x", "y"]
    assert [n.name for n in noting.run("SELECT 2 AS z INTO v")] == ["v"]
    (gone,) = noting.run("DROP TABLE u")
    assert (gone.command, gone.name, gone.text, gone.oid) == ("DROP TABLE", "u", None, made.oid)
    (again,) = noting.run("CREATE TABLE u (x int)")
    assert again.oid != made.oid
    noting.run("CREATE VIEW w AS SELECT 1; CREATE TEMP TABLE temporary (x int)")
    noting.run("ALTER TABLE temporary ADD y int; DROP TABLE temporary; CREATE SEQUENCE q")
    assert noting.notes() == []
    gone_with = noting.run(f"DROP SCHEMA {noting.schema} CASCADE")
    assert {(n.name, n.text) for n in gone_with} == {("t", None), ("u", None), ("v", None)}


def test_what_changes_tables_by_another_name(noting: Source) -> None:
    schema = noting.schema
    noting.run("CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN d AS int DEFAULT 7")
    noting.run("CREATE TYPE pair AS (x int, y int); CREATE TABLE typed OF pair")
    noting.run("CREATE TABLE t (id int PRIMARY KEY, m mood, ms mood[], x d, u int NOT NULL)")
    old = noting.structure()
    (noted,) = noting.run("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
    stops = derive_course(old, [noted.note]).stops
    assert f"a value of the enum of column m of {schema}.t was renamed" in stops[0].reason
    assert [n.name for n in noting.run("ALTER TYPE mood ADD VALUE 'ok'")] == ["t"]
    assert [n.name for n in noting.run("ALTER DOMAIN d SET NOT NULL")] == ["t"]
    assert [n.name for n in noting.run("ALTER TYPE pair DROP ATTRIBUTE y CASCADE")] == ["typed"]
    assert len(noting.structure("typed").columns) == 1
    (noted,) = noting.run("DROP TYPE mood CASCADE")
    assert noted.note.structure is not None
    assert [c.name for c in noted.note.structure.columns] == ["id", "x", "u"]
    noting.run("CREATE UNIQUE INDEX i ON t (u)")
    (noted,) = noting.run("ALTER TABLE t REPLICA IDENTITY USING INDEX i")
    assert noted.note.structure is not None
    assert noted.note.structure.identity_index == ("u",)
    (noted,) = noting.run("DROP INDEX i")
    assert noted.note.structure is not None
    assert noted.note.structure.identity_index == ()
    noting.run("CREATE SCHEMA moved; ALTER TABLE t SET SCHEMA moved")
    other = Source(noting.connection, "moved")
    assert [n.command for n in other.notes()] == ["ALTER TABLE"]
    other.schema = "moved_again"
    assert [n.name for n in other.run("ALTER SCHEMA moved RENAME TO moved_again")] == ["t"]
    assert [n.name for n in other.run("ALTER INDEX moved_again.t RENAME TO u")] == ["u"]
    noting.connection.execute("DROP SCHEMA moved_again CASCADE")


def test_what_a_type_is_made_of(noting: Source) -> None:
    noting.run("CREATE TYPE mood AS ENUM ('sad'); CREATE TYPE inner_pair AS (x int, m mood)")
    noting.run("CREATE TYPE pair AS (a inner_pair[], b text); CREATE DOMAIN named AS pair")
    noting.run("CREATE TYPE moods AS RANGE (SUBTYPE = mood)")
    noting.run(
        "CREATE TABLE r (x int); CREATE TABLE t (id int PRIMARY KEY, p named, rs r, ms moods)"
    )
    for change, names in {
        "ALTER TYPE inner_pair ADD ATTRIBUTE y int": {"p"},
        "ALTER TYPE pair ADD ATTRIBUTE c int": {"p"},
        "ALTER TABLE r ADD y int": {"rs"},
        "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'": {"p", "ms"},
        "ALTER TYPE inner_pair RENAME ATTRIBUTE x TO z": set(),
        "ALTER TYPE pair RENAME TO two": set(),
        "ALTER DOMAIN named RENAME TO called": set(),
    }.items():
        old = noting.structure()
        notes = {n.name: n for n in noting.run(change)}
        assert "t" in notes, change
        new = notes["t"].note.structure
        assert new is not None
        pairs = zip(old.columns, new.columns, strict=True)
        differ = {a.name for a, b in pairs if (a.parts, a.labels) != (b.parts, b.labels)}
        assert differ == names, change
        followed = {a.name for a in old.followed}
        assert bool(derive_course(old, [notes["t"].note]).stops) == bool(names & followed), change


def test_partitions_and_children_are_noted_with_their_parents(noting: Source) -> None:
    noting.run("CREATE TABLE p (id int, k int, PRIMARY KEY (id, k)) PARTITION BY RANGE (k)")
    noting.run("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)")
    noting.run("CREATE TABLE p2 (id int NOT NULL, k int NOT NULL)")
    noting.run("CREATE TABLE child () INHERITS (p2)")
    attached = noting.run("ALTER TABLE child NO INHERIT p2")
    assert [n.name for n in attached] == ["child"]
    attached = noting.run("ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20)")
    assert [n.name for n in attached] == ["p", "p1", "p2"]
    assert noting.structure("p2").key == ("id", "k")
    old = noting.structure("p1")
    noting.run("INSERT INTO p VALUES (1, 1), (1, 11)")
    notes = noting.run("ALTER TABLE p ADD z int DEFAULT 3, ADD v float8 DEFAULT random()")
    assert [(n.name, n.rewrite) for n in notes] == [("p", 0), ("p1", 2), ("p2", 2)]
    assert len(derive_course(old, [notes[1].note]).stops) == 2
    assert [n.name for n in noting.run("ALTER TABLE p DETACH PARTITION p2")] == ["p", "p1"]


def test_what_is_rolled_back_is_not_noted(noting: Source) -> None:
    noting.run("CREATE TABLE t (id int PRIMARY KEY)")
    noting.run("BEGIN; ALTER TABLE t ADD a int; ROLLBACK")
    assert noting.notes() == []
    noting.run("BEGIN; SAVEPOINT s; ALTER TABLE t ADD a int; ROLLBACK TO s")
    (noted,) = noting.run("ALTER TABLE t ADD b int; COMMIT")
    assert noted.note.structure == noting.structure()


def test_by_every_way_a_statement_can_take(noting: Source, noting_url: str) -> None:
    noting.run("CREATE TABLE t (id int PRIMARY KEY, a int)")
    noting.run(
        "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS"
        f" 'ALTER TABLE {noting.schema}.t ALTER a TYPE bigint'"
    )
    (noted,) = noting.run("SELECT f()")
    assert (noted.rewrite, noted.converted) == (4, True)
    noting.connection.execute("ALTER TABLE t ALTER a TYPE int", prepare=True)
    (noted,) = noting.notes()
    assert (noted.rewrite, noted.converted) == (4, False)
    (noted,) = noting.run("SET session_replication_role = replica; ALTER TABLE t ADD b int")
    assert noted.note.structure == noting.structure()
    with connect(
        noting_url, options="-c search_path=nowhere -c standard_conforming_strings=off"
    ) as odd:
        odd.execute(f"ALTER TABLE {noting.schema}.t ALTER a TYPE bigint".encode())
    (noted,) = noting.notes()
    assert (noted.rewrite, noted.converted) == (4, False)


def test_by_a_role_that_knows_nothing_of_us(noting: Source) -> None:
    noting.run(f"CREATE ROLE developer; GRANT ALL ON SCHEMA {noting.schema} TO developer")
    noting.run("CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t OWNER TO developer")
    noting.run("SET datestyle = 'German'; SET timezone = 'Asia/Tokyo'; SET bytea_output = escape")
    noting.connection.execute("SET ROLE developer")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        noting.connection.execute("SELECT FROM wal2lake.structure")
    noting.connection.execute("ALTER TABLE t ADD a timestamptz DEFAULT '2024-02-01 09:00:00+09'")
    noting.connection.execute("ALTER TABLE t ADD b bytea DEFAULT '\\x00'; CREATE TABLE u (x int)")
    noting.connection.execute("SET wal2lake.rewritten = 'nonsense'; ALTER TABLE t ADD c int")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        noting.connection.execute("SELECT wal2lake.note(1::oid, 'x', 0, false)")
    noting.connection.execute("RESET ROLE")
    noted = {n.name: n.note.structure for n in noting.notes()}
    assert set(noted) == {"t", "u"}
    shown = noted["t"]
    assert shown is not None
    assert [c.missing for c in shown.columns] == [None, "2024-02-01 00:00:00+00", "\\x00", None]


def test_ddl_goes_on_where_it_cannot_be_noted(noting: Source) -> None:
    warnings: list[str] = []
    noting.connection.add_notice_handler(lambda d: warnings.append(d.message_primary or ""))
    noting.run("CREATE TABLE t (id int PRIMARY KEY)")
    connection = noting.connection
    with connection.transaction(force_rollback=True):
        connection.execute("ALTER TABLE wal2lake.structure RENAME TO hidden")
        connection.execute("ALTER TABLE t ADD a int; DROP TABLE t")
    assert any("ALTER TABLE is not noted" in warning for warning in warnings)
    assert any("DROP TABLE is not noted" in warning for warning in warnings)
    with connection.transaction(force_rollback=True):
        connection.execute("DROP FUNCTION wal2lake.describe")
        (noted,) = noting.run("ALTER TABLE t ADD a int")
        assert noted.name == "t"
        with pytest.raises(CdcError, match="could not describe"):
            _ = noted.note
        connection.execute("DROP FUNCTION wal2lake.note")
        (noted,) = noting.run("ALTER TABLE t ADD b int")
        assert noted.oid == 0
        with pytest.raises(CdcError, match="could not describe"):
            _ = noted.note


def test_old_notes_are_pruned_and_what_a_table_begins_with_is_not(
    noting: Source, noting_url: str
) -> None:
    insert = (
        "INSERT INTO wal2lake.structure (noted_at, command, rewrite, converted, table_oid)"
        " SELECT now(), CASE WHEN n = 1 THEN 'BASELINE' ELSE 'TEST' END, 0, false, 1"
        " FROM generate_series(1, 6000) n"
    )
    noting.connection.execute(insert.encode())
    count = "SELECT count(*) FROM wal2lake.structure WHERE command = 'TEST'"
    with connect(noting_url) as other, other.transaction():
        # A locked row is left for the next time, and nobody waits.
        other.execute("SELECT FROM wal2lake.structure WHERE command = 'TEST' LIMIT 1 FOR UPDATE")
        noting.connection.execute("SET lock_timeout = '2s'; CREATE TABLE t (id int PRIMARY KEY)")
        for _ in range(300):
            noting.connection.execute("ALTER TABLE t ALTER id SET STATISTICS 5")
    (left,) = noting.connection.execute(count.encode()).fetchone() or (0,)
    assert 4000 < left < 6000
    kept = "SELECT count(*) FROM wal2lake.structure WHERE command = 'BASELINE'"
    assert noting.connection.execute(kept.encode()).fetchone() == (1,)
    noting.connection.execute("DELETE FROM wal2lake.structure WHERE table_oid = 1")


def test_the_catalogue_says_the_same_at_any_time(
    noting: Source, noting_url: str, make_catalog: Callable[[Connection, str], dict[str, str]]
) -> None:
    noting.run("CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN price AS numeric(8, 2)")
    (noted,) = noting.run(
        "CREATE TABLE t (id bigserial PRIMARY KEY, a smallint, n numeric(10, 2), m mood, p price,"
        " v varchar(5), c char(3), g int GENERATED ALWAYS AS (1) STORED, o point, ia int[],"
        ' ma mood[], h text[][], ts timestamptz(3), "Ä b" jsonb)'
    )
    assert noted.note.structure is not None
    assert noted.note.structure == noting.structure()
    arriving = {c.name: c.lake for c in noted.note.structure.followed}
    assert arriving == make_catalog(noting.connection, noting.schema)
    with connect(noting_url) as connection:
        connection.execute("SET datestyle = 'SQL, DMY'; SET intervalstyle = 'iso_8601'")
        assert structure_of(connection, noted.oid) == noted.text
        assert connection.execute("SHOW datestyle").fetchone() == ("SQL, DMY",)
        assert structure_of(connection, 1) is None
        assert structure_of(connection, 0) is None


@pytest.fixture
def make_catalog(make_config: Any) -> Callable[[Connection, str], dict[str, str]]:  # noqa: ANN401
    def made(connection: Connection, schema: str) -> dict[str, str]:
        (table,) = captured_tables(connection, make_config(tables=[f"{schema}.*"]))
        return {c.name: c.type for c in table.columns if c.arrives}

    return made
