"""Test ``establish`` and the source against real Postgres, Kafka, registry and Connect."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from cdc.capture import bootstrap
from cdc.capture.bootstrap import establish
from cdc.capture.continuity import marker_topic, stored_lsn
from cdc.capture.exclude_unreadable import refuse_moved
from cdc.capture.source_watch import SourceWatch
from cdc.client.check import check
from cdc.config import Config, Source
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.events.schema import table_schema_from_avro
from cdc.events.structure.structure import parse
from cdc.kafka.offsets import end_offsets
from cdc.kafka.registry_client import RegistryClient
from cdc.kafka.topics import TopicSpec, delete_topics, ensure_topics, topic_ids
from cdc.source.catalog import catalog
from cdc.source.catalog.captured import captured_tables
from cdc.source.connector import worker_rest
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect, password
from cdc.source.server.finding import Level
from cdc.source.server.origin import origin
from cdc.stack.supervise.connector_watch import Absence, ConnectorWatch
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import STRUCTURE, TableId, TableMode
from cdc.waiting import until
from tests.servers.fixtures import on_containers
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


def test_a_table_whose_name_differs_by_case_is_none_of_ours(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The connector's lists ignore case, and other matching tables have no topic."""
    config = make_config(chain)
    upper = config.name.upper()
    source.execute(f'DROP SCHEMA IF EXISTS "{upper}" CASCADE; CREATE SCHEMA "{upper}"'.encode())
    source.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    source.execute(f'CREATE TABLE "{upper}".t (id int PRIMARY KEY, v int)'.encode())
    source.execute(f'CREATE TABLE "{upper}"."T" (id int PRIMARY KEY, v money)'.encode())
    source.execute("INSERT INTO t VALUES (1, 1)")
    source.execute(f'INSERT INTO "{upper}".t VALUES (1, 100)'.encode())

    establish(Pipeline(config, chain))
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    topic.until(lambda found: ops(found) == ["r"])
    source.execute("UPDATE t SET v = 2")
    source.execute(f'UPDATE "{upper}".t SET v = 200'.encode())

    events = topic.until(lambda found: len(found) >= 2)
    assert [value["after"]["v"] for _, value in events] == [1, 2]
    source.execute(f'DROP SCHEMA "{upper}" CASCADE'.encode())


def test_columns_that_the_connector_takes_for_one_stop_no_other_table(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It would fail for good, so the table leaves the publication before any row of it."""
    config = make_config(chain)
    for name in ("case", "signs"):
        source.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY, v text)'.encode())
    source.execute("CREATE TABLE other (id int PRIMARY KEY)")
    establish(Pipeline(config, chain))
    other = Topic(chain, f"{config.name}.{config.name}.other")
    source.execute("INSERT INTO other VALUES (0)")
    other.until(lambda found: len(found) >= 1)  # its start is over: it reads no columns any more
    with source.transaction():
        source.execute("INSERT INTO other VALUES (1)")
        source.execute("""INSERT INTO "case" VALUES (1, 'before')""")
        source.execute('ALTER TABLE "case" ADD "V" text')
        source.execute("""INSERT INTO "case" VALUES (2, 'low', 'UP')""")
        source.execute('ALTER TABLE signs ADD "a-b" text, ADD a_b text')
        source.execute("INSERT INTO signs VALUES (1, 'x', 'y', 'z')")
        source.execute("INSERT INTO other VALUES (2)")
    source.execute("""UPDATE "case" SET v = 'later'""")

    other.until(lambda found: len(found) >= 3)
    source.execute("INSERT INTO other VALUES (3)")
    events = other.until(lambda found: len(found) >= 4)
    assert [value["after"]["id"] for _, value in events] == [0, 1, 2, 3]
    assert ops(Topic(chain, f"{config.name}.{config.name}.case").events()) == ["c"]
    found = worker_rest.status(chain.connect, config.name)
    assert found is not None
    assert not found.failed


def test_a_new_column_at_which_the_connector_ends_stops_no_other_table(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It can exclude columns that existed at its start, but no later one."""
    config = make_config(chain)
    ending = {"path": "path[]", "numeric": "numeric[]", "tsquery": "tsquery[]", "bit": "bit(5)[]"}
    for name in ending:
        source.execute(f"CREATE TABLE of_{name} (id int PRIMARY KEY)".encode())
    source.execute("CREATE TABLE other (id int PRIMARY KEY)")
    establish(Pipeline(config, chain))
    other = Topic(chain, f"{config.name}.{config.name}.other")
    source.execute("INSERT INTO other VALUES (0)")
    other.until(lambda found: len(found) >= 1)  # its start is over: it reads no columns any more
    with source.transaction():
        for name, kind in ending.items():
            source.execute(f"ALTER TABLE of_{name} ADD v {kind}".encode())
            value = "{NaN}" if name == "numeric" else "{NULL}"
            source.execute(f"INSERT INTO of_{name} VALUES (1, %s)".encode(), (value,))
        source.execute("INSERT INTO of_path VALUES (2, %s)", ('{"((1,1),(2,2))"}',))
        source.execute("INSERT INTO other VALUES (1)")

    assert [v["after"]["id"] for _, v in other.until(lambda found: len(found) >= 2)] == [0, 1]
    found = worker_rest.status(chain.connect, config.name)
    assert found is not None
    assert not found.failed
    assert Topic(chain, f"{config.name}.{config.name}.of_path").events() == []


def test_a_table_without_a_column_is_refused_for_a_reason(
    chain: Endpoints, source: Connection, make_config: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It makes the first snapshot fail. Once the connector accepts it, drop the rule."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    source.execute("CREATE TABLE nothing ()")
    source.execute("ALTER TABLE nothing REPLICA IDENTITY FULL")
    source.execute("CREATE TABLE other (id int PRIMARY KEY)")
    assert "has no columns" in str(refusal(pipeline))
    monkeypatch.setattr(catalog, "without_columns", lambda *_: [])

    with suppress(CdcError):  # it may be seen running before it reads the table
        establish(pipeline)

    until(lambda: "NullPointerException" in _failure(pipeline), 60, "it accepts the table")


def _failure(pipeline: Pipeline) -> str:
    found = worker_rest.status(pipeline.endpoints.connect, pipeline.name)
    return "" if found is None else found.failure


def test_a_table_that_loses_its_columns_or_its_key_stops_no_other_table(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    config = make_config(chain)
    source.execute("CREATE TABLE bag (v text); ALTER TABLE bag REPLICA IDENTITY FULL")
    source.execute("CREATE TABLE keyed (id int PRIMARY KEY, v text)")
    source.execute(
        "CREATE TABLE counted (id int PRIMARY KEY, n int GENERATED ALWAYS AS (1) STORED)"
    )
    source.execute("CREATE TABLE other (id int PRIMARY KEY)")
    establish(Pipeline(config, chain))
    other = Topic(chain, f"{config.name}.{config.name}.other")
    source.execute("INSERT INTO other VALUES (0)")
    other.until(lambda found: len(found) >= 1)
    source.execute("UPDATE other SET id = 1")
    other.until(lambda found: ops(found)[-1] == "c")  # the first snapshot is over
    source.execute("ALTER TABLE bag DROP v; INSERT INTO bag DEFAULT VALUES; TRUNCATE bag")
    source.execute("ALTER TABLE keyed DROP id; INSERT INTO keyed VALUES ('x')")
    source.execute("ALTER TABLE counted DROP id; INSERT INTO counted DEFAULT VALUES")
    source.execute("INSERT INTO other VALUES (2)")
    other.until(lambda found: _last_id(found) == 2)

    worker_rest.restart(
        chain.connect, config.name
    )  # a restart reads the columns of all tables again
    source.execute("INSERT INTO other VALUES (3)")

    other.until(lambda found: _last_id(found) == 3)


def _last_id(events: list[Event]) -> Any:  # noqa: ANN401 - of any row
    """Return the id of the newest row; None if that was deleted."""
    value = events[-1][1]
    return value and value["after"] and value["after"]["id"]


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


def test_chain_broken(chain: Endpoints, source: Connection, make_config: Maker) -> None:
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    name = config.name
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source.execute("INSERT INTO t VALUES (1)")
    establish(pipeline)
    topic = Topic(chain, f"{name}.{name}.t")
    topic.until(lambda found: len(found) == 1)

    source.execute("CREATE TABLE late (id int PRIMARY KEY)")
    late = {"tables": [f"{name}.t", f"{name}.late"]}
    named = config.model_copy(update={"source": config.source.model_copy(update=late)})
    for wanted in (named, config):  # a new table waits, named literally or by a pattern
        assert [str(table.table) for table in establish(Pipeline(wanted, chain))] == [f"{name}.t"]

    worker_rest.stop(chain.connect, name)
    until(lambda: not slot.is_read(source, name), 30, "still in use")
    slot.drop(source, name)
    error = refusal(pipeline)
    assert error.kind is ErrorKind.CHAIN_BROKEN
    assert f"slot {name} is gone" in error.message

    worker_rest.forget_offsets(chain.connect, name)
    error = refusal(pipeline)
    assert error.kind is ErrorKind.CHAIN_BROKEN
    assert "position is lost" in error.message
    assert ops(topic.events()) == ["r"]  # nothing of it was sent


def test_a_start_goes_on_without_a_table_that_is_not_fit_any_more(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """One lost its key, one was dropped, one was created again; each is reported."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    name = config.name
    for table in ("t", "keyless", "gone", "again"):
        source.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)".encode())
    begun = {table.table.name: table for table in establish(pipeline)}
    source.execute("INSERT INTO t VALUES (1)")
    topic = Topic(chain, f"{name}.{name}.t")
    topic.until(lambda events: ops(events) == ["c"])
    source.execute("ALTER TABLE keyless DROP CONSTRAINT keyless_pkey")
    source.execute("DROP TABLE gone, again")
    source.execute("CREATE TABLE again (id int PRIMARY KEY)")
    source.execute("CREATE TABLE late (id int)")

    found = {table.table.name: table for table in establish(pipeline)}
    source.execute("INSERT INTO t VALUES (2)")

    assert topic.until(lambda events: ops(events) == ["c", "c"])
    assert found.keys() == {"t", "keyless", "gone", "again"}
    assert found["t"] == begun["t"]
    assert found["again"].oid not in {0, begun["again"].oid}
    reasons = {table: found[table].unfit for table in ("keyless", "gone")}
    assert reasons["keyless"] is not None
    assert "no usable primary key" in reasons["keyless"].message
    assert reasons["gone"] is not None
    assert "was dropped" in reasons["gone"].message
    captured = worker_rest.configuration(chain.connect, name)
    assert captured is not None
    assert "gone" in captured["table.include.list"]  # as configured before it was dropped


def test_slot_recreated(chain: Endpoints, source: Connection, make_config: Maker) -> None:
    """Changes made while there was no slot are lost, so the connector must not continue."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    name = config.name
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    establish(pipeline)
    source.execute("INSERT INTO t VALUES (1)")
    topic = Topic(chain, f"{name}.{name}.t")
    topic.until(lambda found: ops(found) == ["c"])
    worker_rest.stop(chain.connect, name)
    until(lambda: not slot.is_read(source, name), 30, "still in use")
    slot.drop(source, name)
    source.execute("INSERT INTO t VALUES (2)")
    source.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
    source.execute("INSERT INTO t VALUES (3)")
    error = refusal(pipeline)
    assert error.kind is ErrorKind.CHAIN_BROKEN
    assert "was recreated" in error.message
    # The connector's own check agrees if the job's supervisor starts it without ours.
    worker_rest.resume(chain.connect, name)
    until(lambda: "FAILED" in _tasks(chain, name), 60, "the connector went on")
    assert ops(topic.events()) == ["c"]


def test_a_slot_that_others_move_on_ends_the_job(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The connector continues from there. While it alone moves the slot, nothing is reported."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    name = config.name
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    establish(pipeline)
    topic = Topic(chain, f"{name}.{name}.t")
    asked = partial(stored_lsn, chain.connect, name)
    looking = SourceWatch(chain.source_url, name, origin(source), asked)
    for number in range(1, 6):
        before = _confirmed(source, name)
        source.execute("INSERT INTO t VALUES (%s)", (number,))
        topic.until(lambda found: len(found) >= number)  # noqa: B023 - is called at once
        until(lambda: _looked(looking) and _confirmed(source, name) > before, 60, "stands")  # noqa: B023
    worker_rest.stop(chain.connect, name)
    until(lambda: not slot.is_read(source, name), 30, "still in use")
    assert _looked(looking)
    source.execute("INSERT INTO t VALUES (6)")
    source.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (name,))
    with pytest.raises(CdcError) as caught:
        until(lambda: not _looked(looking), 30, "nothing was noticed")
    assert caught.value.reason is Reason.SLOT_RECREATED
    assert refusal(pipeline).reason is Reason.SLOT_RECREATED
    with pytest.raises(CdcError) as caught:
        refuse_moved(pipeline)  # as the supervisor does before it restarts a failed one
    assert caught.value.reason is Reason.SLOT_RECREATED
    source.execute("INSERT INTO t VALUES (7)")
    worker_rest.resume(chain.connect, name)
    events = topic.until(lambda found: len(found) >= 6)
    assert [value["after"]["id"] for _, value in events] == [1, 2, 3, 4, 5, 7]
    with pytest.raises(CdcError):
        looking.look(0)
    looking.close()


def _looked(looking: SourceWatch) -> bool:
    looking.look(0)
    return True


def _confirmed(connection: Connection, name: str) -> int:
    state = slot.slot_state(connection, name)
    return (state.confirmed_lsn if state else None) or 0


def test_snapshot_interrupted(
    chain: Endpoints,
    chain_state: Path,
    source: Connection,
    make_config: Maker,
    request: pytest.FixtureRequest,
) -> None:
    """It starts over from scratch: a row deleted in between must not remain."""
    if on_containers(request):
        pytest.skip("only an embedded worker's topics are begun again")
    config = make_config(chain)
    name = config.name
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source.execute("INSERT INTO t VALUES (1), (2)")
    establish(Pipeline(config, chain))
    topic = Topic(chain, f"{name}.{name}.t")
    topic.until(lambda found: ops(found) == ["r", "r"])
    before = topic_ids(chain.kafka, [topic.name])
    worker_rest.stop(chain.connect, name)
    _mark_unfinished(chain, name)
    source.execute("DELETE FROM t WHERE id = 2")
    establish(Pipeline(_embedded_worker(config, chain_state), chain))
    events = topic.until(lambda found: len(found) >= 1)
    assert [value["after"]["id"] for _, value in events] == [1]
    assert topic_ids(chain.kafka, [topic.name]) != before


def _tasks(chain: Endpoints, name: str) -> tuple[str, ...]:
    status = worker_rest.status(chain.connect, name)
    return tuple(task.state for task in status.tasks) if status else ()


def _mark_unfinished(chain: Endpoints, name: str) -> None:
    """Set the position that the connector stores in the middle of its first snapshot."""
    url = f"{chain.connect}/connectors/{name}/offsets"
    (entry,) = httpx.get(url).raise_for_status().json()["offsets"]
    entry["offset"] |= {"snapshot": "INITIAL", "snapshot_completed": False}
    httpx.patch(url, json={"offsets": [entry]}).raise_for_status()


def _embedded_worker(config: Config, state: Path) -> Config:
    """Pretend that the worker is embedded: only then is an interrupted snapshot recognized."""
    own = config.connect.model_copy(update={"url": None})
    return config.model_copy(update={"connect": own, "state_dir": state})


def test_topics(chain: Endpoints) -> None:
    compact = {"cleanup.policy": "compact", "delete.retention.ms": "1234"}
    for _ in range(2):
        ensure_topics(chain.kafka, [TopicSpec("one", compact), TopicSpec("two")])
    first = topic_ids(chain.kafka, ["one", "two", "three"])
    assert set(first) == {"one", "two"}
    assert end_offsets(chain.kafka, ["one", "three"]) == {"one": 0}
    with pytest.raises(CdcError) as caught:
        ensure_topics(chain.kafka, [TopicSpec("one", {"cleanup.policy": "delete"})])
    assert caught.value.kind is ErrorKind.CONFLICT
    assert "cleanup.policy=compact" in caught.value.message
    delete_topics(chain.kafka, ["one", "three"])
    ensure_topics(chain.kafka, [TopicSpec("one", compact)])
    again = topic_ids(chain.kafka, ["one", "two"])
    assert again["two"] == first["two"]
    assert again["one"] != first["one"]


def test_registry(chain: Endpoints) -> None:
    client = RegistryClient(chain.registry)
    assert client.schema(2**31 - 1) is None
    assert client.schemas([2**31 - 1]) == {}


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


def test_messages_of_others_are_passed_over(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It holds for any prefix, in and outside of transactions, and across a task's restart."""
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    establish(Pipeline(config, chain))
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    for transactional in (True, False):
        for prefix in ("app", "", " ", "a\nb", "a,b", ".", "\u00c4", "x" * 60):
            emit(source, prefix, transactional=transactional)
    with source.transaction():
        source.execute("INSERT INTO t VALUES (1)")
        emit(source, "app", "m" * 200_000, transactional=True)
        source.execute("INSERT INTO t VALUES (2)")
    topic.until(lambda found: ops(found) == ["c", "c"])

    with connect(chain.source_url) as other, other.transaction():
        # Its changes precede in the WAL a message that arrives before them.
        other.execute(f"INSERT INTO {config.name}.t VALUES (3)".encode())
        emit(source, "app", transactional=False)
        source.execute("INSERT INTO t VALUES (4)")
        topic.until(lambda found: len(found) >= 3)
        worker_rest.stop(chain.connect, config.name)
        until(lambda: not slot.is_read(source, config.name), 30, "still in use")
        emit(source, "app", transactional=False)
        worker_rest.resume(chain.connect, config.name)
    events = topic.until(lambda found: len(found) >= 4)
    assert [value["after"]["id"] for _, value in events] == [1, 2, 4, 3]
    ends = Topic(chain, marker_topic(config)).until(lambda found: len(_counts(found, topic)) >= 3)
    assert _counts(ends, topic) == [2, 1, 1]  # messages do not count as events of a transaction


def test_a_topic_that_is_not_there_fails_the_task_by_its_name(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It must not wait for ever in state RUNNING; the test shortens the wait."""
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    establish(Pipeline(config, chain))
    wanted = worker_rest.configuration(chain.connect, config.name)
    assert wanted is not None
    assert wanted["producer.override.max.block.ms"] == "60000"
    told = {name: text for name, text in wanted.items() if not name.startswith("message.prefix")}
    told["producer.override.max.block.ms"] = "5000"
    worker_rest.configure(chain.connect, config.name, told)
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    source.execute("INSERT INTO t VALUES (1)")
    topic.until(lambda found: ops(found) == ["c"])
    emit(source, "app", transactional=True)
    until(lambda: "FAILED" in _tasks(chain, config.name), 60, "it waits for the topic")
    watch = ConnectorWatch(chain.connect, config.name, Absence(lambda: True))
    assert f"Topic {config.name}.message not present in metadata" in str(watch.look(0))


def emit(connection: Connection, prefix: str, content: str = "x", *, transactional: bool) -> None:
    connection.execute(
        "SELECT pg_logical_emit_message(%s, %s, %s)", (transactional, prefix, content)
    )


def _counts(events: list[Event], topic: Topic) -> list[int]:
    """Return the END marker's event count of each transaction with events in the topic."""
    found = []
    for _, value in events:
        if value["status"] == "END" and any(
            topic.name.endswith(each["data_collection"]) for each in value["data_collections"] or ()
        ):
            assert value["event_count"] == sum(
                each["event_count"] for each in value["data_collections"]
            )
            found.append(value["event_count"])
    return found
