"""Test what the event triggers note of each change, whoever makes it and however."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc.errors import CdcError
from cdc.events.names import avro_name
from cdc.events.structure.follow import follow
from cdc.events.structure.structure import unpublished_from
from cdc.source.catalog.captured import captured_tables
from cdc.source.notes import triggers
from cdc.source.notes.triggers import structure_of
from cdc.source.server.connection import Connection, connect
from cdc.source.server.finding import Level
from cdc.source.setup.prepare import prepare, published
from cdc.tables import STRUCTURE
from tests.source.conftest import Maker
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
    stops = follow(old, [noted.note]).stops
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
        assert bool(follow(old, [notes["t"].note]).stops) == bool(names & followed), change


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
    assert len(follow(old, [notes[1].note]).stops) == 2
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


ROOT: Final = Path(__file__).parents[3]
SCRIPT: Final = ROOT / "connectors" / "structure.sql"
TRIGGERS: Final = "SELECT oid, obj_description(oid) FROM pg_event_trigger ORDER BY evtname"


SPOILED: Final = {
    "COMMENT ON EVENT TRIGGER wal2lake_gone IS 'wal2lake 0'": "up installs",
    "ALTER EVENT TRIGGER wal2lake_changed DISABLE": "event trigger wal2lake_changed is disabled",
    "ALTER EVENT TRIGGER wal2lake_gone ENABLE": "event trigger wal2lake_gone was altered",
    "ALTER EVENT TRIGGER wal2lake_gone DISABLE; ALTER EVENT TRIGGER wal2lake_gone ENABLE ALWAYS": (
        "event trigger wal2lake_gone was altered after it was made"
    ),
    "DROP EVENT TRIGGER wal2lake_rewritten": "event trigger wal2lake_rewritten is gone",
    "DROP EVENT TRIGGER wal2lake_changed, wal2lake_gone, wal2lake_rewritten": "wal2lake_gone is",
}


def test_installed_once_and_renewed_when_it_is_another_version(noting: Source) -> None:
    connection = noting.connection
    first = connection.execute(TRIGGERS.encode()).fetchall()
    assert len(first) == 3
    assert triggers.install(connection)
    assert connection.execute(TRIGGERS.encode()).fetchall() == first
    for spoiled, said in SPOILED.items():
        connection.execute(spoiled.encode())
        (finding,) = triggers.findings(connection)
        assert said in finding.message
        assert finding.level is (Level.OK if "up installs" in said else Level.WARNING)
        assert triggers.install(connection)
        assert triggers.is_installed(connection)
        (finding,) = triggers.findings(connection)
        assert finding.message == "are recorded by event triggers"
    noting.run("CREATE TABLE t (id int PRIMARY KEY)")
    assert [n.name for n in noting.run("ALTER TABLE t ADD a int")] == ["t"]


OFF: Final = "ALTER EVENT TRIGGER wal2lake_changed DISABLE"
ON: Final = "ALTER EVENT TRIGGER wal2lake_changed ENABLE ALWAYS"
UNSEEN: Final = {
    "renamed and back": (
        "ALTER TABLE t RENAME TO u; INSERT INTO u VALUES (9); ALTER TABLE u RENAME TO t"
    ),
    "a column renamed and back": "ALTER TABLE t RENAME v TO y; ALTER TABLE t RENAME y TO v",
    "columns that swap their names": (
        "ALTER TABLE t RENAME v TO y; ALTER TABLE t RENAME w TO v; ALTER TABLE t RENAME y TO w"
    ),
    "emptied": "TRUNCATE t",
    "a value of an enum": "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",
    "out of the publication and back": (
        "ALTER PUBLICATION ours DROP TABLE t; ALTER PUBLICATION ours ADD TABLE t"
    ),
    "created again": (
        "DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY); ALTER PUBLICATION ours ADD TABLE t"
    ),
}


@pytest.mark.parametrize("by", ["script", "up"])
@pytest.mark.parametrize("case", UNSEEN, ids=lambda case: case.replace(" ", "-"))
def test_what_was_not_noted_stops_its_table_once_they_are_made_again(
    noting: Source, case: str, by: str
) -> None:
    """No other table stops: the rows of the catalogue show which ones may have changed."""
    noting.run("CREATE TYPE mood AS ENUM ('sad')")
    noting.run("CREATE TABLE t (id int PRIMARY KEY, v int, w int, m mood); CREATE TABLE o (id int)")
    noting.run("CREATE TABLE IF NOT EXISTS wal2lake.heartbeat (id int)")
    noting.run("DROP PUBLICATION IF EXISTS ours")
    noting.run("CREATE PUBLICATION ours FOR TABLE t, o, wal2lake.heartbeat")
    noting.run("ALTER TABLE t ADD x int; ALTER TABLE o ADD x int")
    before = noting.structure()

    for statement in (OFF, *UNSEEN[case].split("; "), ON):
        noting.run(statement)
    noting.seen = _last(noting)
    _made_again(noting, by)

    notes = noting.notes()
    assert {(noted.command, noted.name) for noted in notes} == {("UNNOTED", "t")}
    course = follow(before, [noted.note for noted in notes])
    assert any(
        reason in stop.reason
        for stop in course.stops
        for reason in ("may not have been noted", "was dropped and created again")
    )
    _made_again(noting, by)
    assert noting.notes() == []


def test_a_trigger_that_was_off_while_nothing_changed_stops_nothing(noting: Source) -> None:
    noting.run("CREATE TABLE t (id int PRIMARY KEY)")
    noting.run("CREATE TABLE IF NOT EXISTS wal2lake.heartbeat (id int)")
    noting.run("DROP PUBLICATION IF EXISTS ours")
    noting.run("CREATE PUBLICATION ours FOR TABLE t, wal2lake.heartbeat")
    noting.run("ALTER TABLE t ADD x int")
    for statement in (OFF, "INSERT INTO t VALUES (1, 1)", "ANALYZE t", "VACUUM t", ON):
        noting.run(statement)
    assert not triggers.is_installed(noting.connection)
    _made_again(noting, "up")
    assert noting.notes() == []
    assert triggers.is_installed(noting.connection)


def _made_again(noting: Source, by: str) -> None:
    if by == "up":
        assert triggers.install(noting.connection)
    else:
        noting.connection.execute(triggers.script().encode())


def _last(noting: Source) -> int:
    row = noting.connection.execute("SELECT max(id) FROM wal2lake.structure").fetchone()
    assert row is not None
    return int(row[0])


def test_a_role_that_may_not_install_them_is_told_and_goes_on(
    noting: Source, noting_url: str, make_config: Maker
) -> None:
    admin = noting.connection
    admin.execute(
        "CREATE ROLE owner LOGIN REPLICATION PASSWORD 'x'; GRANT CREATE ON DATABASE app TO owner"
    )
    admin.execute(f"GRANT USAGE ON SCHEMA {noting.schema} TO owner".encode())
    admin.execute("DROP SCHEMA wal2lake CASCADE")
    assert admin.execute(TRIGGERS.encode()).fetchall() == []
    admin.execute("CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t OWNER TO owner")
    config = make_config(tables=[f"{noting.schema}.t"])
    with connect(noting_url, user="owner", password="x") as connection:
        (finding,) = triggers.findings(connection)
        assert finding.level is Level.WARNING
        assert "connectors/structure.sql" in finding.remedy
        prepare(connection, config, captured_tables(connection, config))
        assert STRUCTURE in (published(connection, config.name) or ())
        assert not triggers.is_installed(connection)
        admin.execute(SCRIPT.read_bytes())
        noting.seen = 0
        connection.execute(f"ALTER TABLE {noting.schema}.t ADD a int".encode())
        assert [n.name for n in noting.notes()] == ["t"]
        (finding,) = triggers.findings(connection)
        assert finding.level is Level.OK


def test_the_way_to_remove_it_that_is_documented(noting: Source) -> None:
    manual = (ROOT / "docs" / "how-to" / "connect-postgres.md").read_text()
    section = manual.partition("## Remove it from the source")[2]
    commands = section.partition("```sql")[2].partition("```")[0]
    connection = noting.connection
    with connection.transaction(force_rollback=True):
        connection.execute("CREATE PUBLICATION wal2lake FOR TABLE wal2lake.structure")
        for statement in commands.strip().splitlines():
            if "slot" not in statement:
                connection.execute(statement.encode())
        assert connection.execute(TRIGGERS.encode()).fetchall() == []
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        row = connection.execute("SELECT to_regnamespace('wal2lake')").fetchone()
        assert row == (None,)


NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6
)
CLASHES = {
    "case": 'ALTER TABLE t ADD "V" text',
    "signs": 'ALTER TABLE t ADD "a-b" text, ADD a_b text',
    "a digit": 'ALTER TABLE t ADD "9" int, ADD "_9" int',
    "two planes": 'ALTER TABLE t ADD "😀" int, ADD "__" int',
    "a renaming": 'ALTER TABLE t ADD w int; ALTER TABLE t RENAME w TO "V"',
    "of its parent": 'ALTER TABLE parent ADD "V" text',
    "no column": "ALTER TABLE t NO INHERIT parent; ALTER TABLE t DROP id, DROP v",
    "no column, by its type": (
        "CREATE DOMAIN d AS int; ALTER TABLE t NO INHERIT parent; ALTER TABLE t ADD w d;"
        " ALTER TABLE t DROP id, DROP v; DROP DOMAIN d CASCADE"
    ),
    "an array of paths": "ALTER TABLE t ADD p path[]",
    "an array of what may be NULL": "ALTER TABLE t ADD q tsquery[]",
    "an array of its own": "CREATE TYPE mood AS ENUM ('sad'); ALTER TABLE t ADD m mood[]",
    "an array of a domain": "CREATE DOMAIN d AS text; ALTER TABLE t ADD m d[]",
    "an array by its type": (
        "ALTER TABLE t ADD w text; ALTER TABLE t ALTER w TYPE numeric[] USING NULL"
    ),
    "an array of its parent": "ALTER TABLE parent ADD q xid8[]",
    "an array in two steps": "BEGIN; ALTER TABLE t ADD w int; ALTER TABLE t ADD q xid8[]; COMMIT",
}


def published_by(noting: Source, publication: str) -> set[str]:
    rows = noting.connection.execute(
        "SELECT tablename FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s",
        (publication, noting.schema),
    ).fetchall()
    return {name for (name,) in rows}


@pytest.mark.parametrize("case", CLASHES, ids=lambda case: case.replace(" ", "-"))
def test_a_table_that_the_connector_cannot_read_leaves_our_publications(
    noting: Source, case: str
) -> None:
    """It leaves in the transaction of the DDL, which never fails; other publications keep it."""
    noting.run("CREATE TABLE parent (v int); CREATE TABLE t (id int PRIMARY KEY) INHERITS (parent)")
    noting.run("CREATE TABLE other (id int PRIMARY KEY)")
    noting.connection.execute(
        "CREATE TABLE IF NOT EXISTS wal2lake.heartbeat"
        " (id int PRIMARY KEY, token text NOT NULL, at timestamptz NOT NULL)"
    )
    for name in ("ours", "theirs"):
        noting.run(f"DROP PUBLICATION IF EXISTS {name}")
    noting.run("CREATE PUBLICATION ours FOR TABLE ONLY t, other, wal2lake.heartbeat")
    noting.run("CREATE PUBLICATION theirs FOR TABLE ONLY t")
    noting.notes()

    notes = noting.run(f"{CLASHES[case]}; ALTER TABLE other ADD v text")

    assert published_by(noting, "ours") == {"other"}
    assert published_by(noting, "theirs") == {"t"}
    left = [unpublished_from(note.text) for note in notes if note.name == "t" and note.text]
    assert "ours" in left


def test_a_table_stays_published_with_what_the_connector_leaves_out_or_can_write(
    noting: Source,
) -> None:
    noting.run("CREATE TABLE t (id int PRIMARY KEY, q tsquery[], v int)")
    noting.connection.execute(
        "CREATE TABLE IF NOT EXISTS wal2lake.heartbeat"
        " (id int PRIMARY KEY, token text NOT NULL, at timestamptz NOT NULL)"
    )
    noting.run("DROP PUBLICATION IF EXISTS ours; CREATE PUBLICATION ours FOR TABLE t")
    noting.run("ALTER PUBLICATION ours ADD TABLE wal2lake.heartbeat")
    noting.run("ALTER TABLE t ADD a int[], ADD b text[], ADD c inet[], ADD d xml[], ADD e path")
    noting.run("ALTER TABLE t RENAME q TO r; ALTER TABLE t DROP v; ALTER TABLE t ADD v bytea[]")

    assert published_by(noting, "ours") == {"t"}


@given(st.lists(NAMES, min_size=20, max_size=60))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_source_spells_a_name_as_we_do(noting_url: str, names: list[str]) -> None:
    with connect(noting_url) as connection:
        spelled = connection.execute(
            "SELECT array_agg(wal2lake.avro_name(n) ORDER BY i)"
            " FROM unnest(%s::text[]) WITH ORDINALITY u(n, i)",
            (names,),
        ).fetchone()
    assert spelled is not None
    assert spelled[0] == [avro_name(name).lower() for name in names]
