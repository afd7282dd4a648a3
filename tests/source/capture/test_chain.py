"""Test ``establish`` and the source against real Postgres, Kafka, registry and Connect."""

from typing import Any

import pytest

from cdc.capture import bootstrap
from cdc.capture.bootstrap import establish
from cdc.client.check import check
from cdc.config import Source
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import table_schema_from_avro
from cdc.events.structure.structure import parse
from cdc.source.catalog.captured import captured_tables
from cdc.source.connector import worker_rest
from cdc.source.server.connection import Connection, connect, password
from cdc.source.server.finding import Level
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import STRUCTURE, TableId, TableMode
from tests.source.conftest import Maker
from tests.source.topic import Event, Topic, ops

pytestmark = pytest.mark.integration


def refusal(pipeline: Pipeline) -> CdcError:
    with pytest.raises(CdcError) as caught:
        establish(pipeline)
    return caught.value


def test_truncate_on_compacted_topic(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    source.execute("INSERT INTO t VALUES (1, 'by snapshot')")
    source.execute("CREATE TABLE bag (x int)")
    source.execute("ALTER TABLE bag REPLICA IDENTITY FULL")
    tables = establish(Pipeline(config, chain))
    assert [table.mode for table in tables] == [TableMode.MULTISET, TableMode.KEYED]
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    topic.until(lambda found: ops(found) == ["r"])  # a snapshot sees a truncated table as empty
    with source.transaction():
        source.execute("INSERT INTO t VALUES (2, 'before')")
        source.execute("TRUNCATE t")
        source.execute("INSERT INTO t VALUES (3, 'after')")
    source.execute("DELETE FROM t")
    source.execute("INSERT INTO bag VALUES (7)")
    events = topic.until(lambda found: len(found) >= 6)
    assert ops(events) == ["r", "c", "t", "c", "d", None]
    keys = [key for key, _ in events]
    assert [k["key"] for k in keys if "key" in k] == [{"id": i} for i in (1, 2, 3, 3, 3)]
    assert keys[2]["map"][0]["key"]["string"] == "key"  # the constant key of {"key": null}
    bag = Topic(chain, f"{config.name}.{config.name}.bag").until(lambda found: len(found) >= 1)
    assert bag[0][0] == keys[2]


def test_a_parent_is_its_own_rows_in_snapshot_and_stream(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It holds whether a child is captured or not, and created before or after the start."""
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    source.execute("INSERT INTO t VALUES (1, 'parent')")
    source.execute("CREATE TABLE child (extra int, PRIMARY KEY (id)) INHERITS (t)")
    source.execute("INSERT INTO child VALUES (10, 'child', 1)")
    source.execute("CREATE TABLE grandchild (PRIMARY KEY (id)) INHERITS (child)")
    source.execute("INSERT INTO grandchild VALUES (100, 'grandchild', 1)")
    wanted = [f"{config.name}.t", f"{config.name}.child"]
    config = config.model_copy(update={"source": Source(tables=wanted, snapshot="connector")})
    establish(Pipeline(config, chain))
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    topic.until(lambda found: len(found) >= 1)

    source.execute("CREATE TABLE later (PRIMARY KEY (id)) INHERITS (t)")
    source.execute("INSERT INTO later VALUES (1000, 'later')")
    source.execute("UPDATE t SET v = v || '!'")
    source.execute("ALTER TABLE t ADD w int DEFAULT 3")
    source.execute("INSERT INTO t VALUES (2, 'parent too', 4)")

    events = topic.until(lambda found: len(found) >= 3)
    assert [(v["op"], v["after"]["id"]) for _, v in events] == [("r", 1), ("u", 1), ("c", 2)]
    child = Topic(chain, f"{config.name}.{config.name}.child").until(lambda found: len(found) >= 2)
    assert [(v["op"], v["after"]["id"]) for _, v in child] == [("r", 10), ("u", 10)]


def test_establish_again(chain: Endpoints, source: Connection, make_config: Maker) -> None:
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source.execute("INSERT INTO t VALUES (1)")
    establish(pipeline)
    token = bootstrap.placeholder(pipeline)
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    topic.until(lambda found: ops(found) == ["r"])
    establish(pipeline)
    source.execute("INSERT INTO t VALUES (2)")
    topic.until(lambda found: ops(found) == ["r", "c"])
    assert bootstrap.placeholder(pipeline) == token
    found = worker_rest.configuration(chain.connect, config.name)
    assert found is not None
    assert found[worker_rest.PLACEHOLDER] == token
    # A deleted connector's position is kept, so there is no second snapshot.
    worker_rest.delete(chain.connect, config.name)
    source.execute("INSERT INTO t VALUES (3)")
    establish(pipeline)
    events = topic.until(lambda found: len(found) >= 3)
    assert [(value["op"], value["after"]["id"]) for _, value in events] == [
        ("r", 1),
        ("c", 2),
        ("c", 3),
    ]


def test_password_is_a_reference(chain: Endpoints, source: Connection, make_config: Maker) -> None:
    secret = password(chain.source_url)
    reference = "${env:NOT_THERE}"
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    own = config.connect.model_copy(update={"source_password": reference})
    error = refusal(Pipeline(config.model_copy(update={"connect": own}), chain))
    assert error.kind is ErrorKind.SOURCE_NOT_READY
    assert secret not in str(error)
    findings = check(Pipeline(config, chain))
    assert secret not in str(findings)
    assert not [finding for finding in findings if finding.level is Level.ERROR]


def test_catalogue_and_log_agree(chain: Endpoints, source: Connection, make_config: Maker) -> None:
    """The catalogue and the connector's Avro schema give the same types for the lake."""
    config = make_config(chain)
    source.execute("CREATE EXTENSION hstore; CREATE EXTENSION citext")
    source.execute("""
        CREATE TYPE mood AS ENUM ('sad', 'happy');
        CREATE DOMAIN posint AS int CHECK (VALUE > 0);
        CREATE DOMAIN price AS numeric(8, 2);
        CREATE DOMAIN short AS varchar(8);
        CREATE DOMAIN day AS date;
        CREATE TABLE t (
            id bigserial PRIMARY KEY, i2 smallint, i4 int NOT NULL, s serial, b bool, f4 real,
            f8 float8, n numeric, n102 numeric(10, 2), n50 numeric(50, 5), neg numeric(4, -2),
            x text, vc varchar(20), vcn varchar, ch char(5), ct citext, bya bytea, d date, tm time,
            tm3 time(3), tmz timetz, ts timestamp, ts0 timestamp(0), tz timestamptz(3), u uuid,
            j json, jb jsonb, iv interval, xm xml, o oid, m mood, h hstore, mny money, bt bit,
            ine inet, ci cidr, mac macaddr, r4 int4range, tr tstzrange, tsv tsvector, c1 "char",
            dom posint, domn price NOT NULL, domt short, domd day, gen int GENERATED ALWAYS AS
            (1 + 1) STORED, ident name, ta text[], va varchar(5)[], ia int[], la bigint[],
            ja jsonb[], ua uuid[], da date[], bya_a bytea[], na numeric[], "Ä b" int, "1a" text
        )
    """)
    source.execute("INSERT INTO t (i4, domn) VALUES (1, 9.99)")
    (table,) = establish(Pipeline(config, chain))
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    source.execute("INSERT INTO t (i4, domn) VALUES (2, 9.99)")
    events = topic.until(lambda found: len(found) >= 2)
    described = table_schema_from_avro(
        topic.value_schema(), table=TableId(config.name, "t"), key=("id",), mode=TableMode.KEYED
    )
    from_catalogue = {c.name: c.type for c in table.columns if c.arrives}
    assert {c.name: c.type for c in described.columns} == from_catalogue
    assert {c.name for c in table.columns if not c.arrives} == {"gen", "na", "tmz"}
    snapshot, streamed = (value["after"] for _, value in events)
    assert snapshot.keys() == streamed.keys()


def test_a_note_has_its_place_between_the_rows(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It holds for a change of structure in a transaction with rows, and for one alone."""
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY, a int)")
    source.execute("INSERT INTO t VALUES (0, 0)")
    establish(Pipeline(config, chain))
    changes = Topic(chain, f"{config.name}.{config.name}.t")
    changes.until(lambda found: ops(found) == ["r"])  # later changes are in no snapshot
    with source.transaction():
        source.execute("INSERT INTO t VALUES (1, 1)")
        source.execute("ALTER TABLE t ADD b text DEFAULT 'x'")
        source.execute("INSERT INTO t VALUES (2, 2, 'y')")
    with source.transaction(force_rollback=True):
        source.execute("ALTER TABLE t DROP a")
    source.execute("ALTER TABLE t RENAME a TO c")
    source.execute("INSERT INTO t VALUES (3, 3, 'z')")
    rows = changes.until(lambda found: len(found) >= 4)[1:]
    topic = Topic(chain, STRUCTURE.topic(config.name))
    events = topic.until(lambda found: len(_alterations(found, config.name)) >= 2)
    notes = _alterations(events, config.name)
    assert [list(value["after"]) for _, value in rows] == [
        ["id", "a"],
        ["id", "a", "b"],
        ["id", "c", "b"],
    ]
    structures = [parse(value["after"]["structure"]) for value in notes]
    assert [[c.name for c in s.columns] for s in structures] == [["id", "a", "b"], ["id", "c", "b"]]
    assert structures[0].columns[2].missing == "x"
    order = [rows[0][1], notes[0], rows[1][1], notes[1], rows[2][1]]
    lsns = [value["source"]["lsn"] for value in order]
    assert lsns == sorted(set(lsns))
    assert {value["source"]["txId"] for value in order[:3]} == {notes[0]["source"]["txId"]}


def test_a_type_that_is_called_as_another_is_noted_before_its_values_arrive(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The connector goes by type names; a new type of a column's type name does no harm."""
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY, d date)")
    establish(Pipeline(config, chain))
    changes = Topic(chain, f"{config.name}.{config.name}.t")
    source.execute("CREATE SCHEMA own; CREATE TYPE own.interval AS RANGE (subtype = numeric)")
    source.execute('CREATE TABLE "date" (id int)')
    source.execute("INSERT INTO t VALUES (1, '2020-01-01')")
    source.execute("ALTER TABLE t ADD x own.interval")
    source.execute("INSERT INTO t VALUES (2, '2020-01-01', '[1,2]')")
    rows = changes.until(lambda found: len(found) >= 2)
    assert {value["after"]["d"] for _, value in rows} == {18262}  # days since 1970
    assert rows[1][1]["after"]["x"] != b"[1,2]"
    topic = Topic(chain, STRUCTURE.topic(config.name))
    events = topic.until(lambda found: bool(_alterations(found, config.name)))
    (note,) = _alterations(events, config.name)
    (*_, x) = parse(note["after"]["structure"]).columns
    assert x.namesake == "pg_catalog.interval"
    assert note["source"]["lsn"] < rows[1][1]["source"]["lsn"]
    source.execute("DROP SCHEMA own CASCADE")


def _alterations(events: list[Event], schema: str) -> list[Any]:
    """Return the schema's ALTER TABLE notes from the stream; other tests' are in the snapshot."""
    values = [value for _, value in events if value and value["op"] == "c"]
    return [
        value
        for value in values
        if (value["after"]["command"], value["after"]["table_schema"]) == ("ALTER TABLE", schema)
    ]


def test_captured_tables_are_those_of_the_connector(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """A table that is published for another reader is not captured."""
    config = make_config(chain)
    config = config.model_copy(update={"name": "captured"})
    source.execute("CREATE TABLE mine (id int PRIMARY KEY)")
    source.execute("CREATE TABLE other (id int PRIMARY KEY)")
    own = config.source.model_copy(update={"tables": [f"{source_schema(source)}.mine"]})
    config = config.model_copy(update={"source": own})
    try:
        establish(Pipeline(config, chain))
        source.execute("ALTER PUBLICATION captured ADD TABLE other")
        source.execute("INSERT INTO other VALUES (1)")
        source.execute("INSERT INTO mine VALUES (1)")
        name = TableId(source_schema(source), "mine").topic(config.name)
        Topic(chain, name).until(lambda found: ops(found) == ["c"])
        status = worker_rest.status(chain.connect, config.name)
        assert status is not None
        assert status.running
        with connect(chain.source_url) as connection:
            assert len(captured_tables(connection, config)) == 1
    finally:
        worker_rest.delete(chain.connect, config.name)


def source_schema(connection: Connection) -> str:
    row = connection.execute("SELECT current_schema()").fetchone()
    assert row is not None
    return str(row[0])
