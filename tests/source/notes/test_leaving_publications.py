"""Test which tables leave a publication, because the connector could not read them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc.events.names import avro_name
from cdc.events.structure.structure import unpublished_from
from cdc.source.server.connection import connect
from tests.source.noting import Source

pytestmark = pytest.mark.integration

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
