"""Test how the event triggers are installed, renewed and removed, and what goes unnoted without."""

from pathlib import Path
from typing import Final

import pytest

from cdc.events.structure.derive_steps import derive_course
from cdc.source.catalog.captured import captured_tables
from cdc.source.notes import triggers
from cdc.source.server.connection import connect
from cdc.source.server.finding import Level
from cdc.source.setup.prepare import prepare, publication_tables
from cdc.tables import STRUCTURE
from tests.source.conftest import Maker
from tests.source.noting import Source

pytestmark = pytest.mark.integration

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
    course = derive_course(before, [noted.note for noted in notes])
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
        assert STRUCTURE in (publication_tables(connection, config.name) or ())
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
