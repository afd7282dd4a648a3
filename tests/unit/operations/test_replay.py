"""Replay and rebuild refuse wrong requests before they start, and report their outcome."""

import io
from dataclasses import replace
from pathlib import Path

import fastavro
import pytest

from cdc.apply.difference.likeness import Likeness
from cdc.apply.difference.merge import difference_plan
from cdc.cli.replay import EventsFrom, facts, rebuild, replay, sentences
from cdc.config import Config, Kafka, Lake, Registry, Source
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column, TableSchema
from cdc.kafka.broker import Broker
from cdc.operations.replay.addresses import Addresses
from cdc.operations.replay.place import place_for, refuse_taken
from cdc.operations.replay.to_path import Outcome, ReplayOptions, replay_into
from cdc.operations.replay.topic_copy import _zigzag
from cdc.state.directory import StateDir
from cdc.tables import TableId, TableMode

TABLE = TableId("shop", "orders")
EQUAL = Likeness(rows=1234, added=0, changed=0, swept=0)
OUTCOME = Outcome(
    table="shop.orders",
    path="/tmp/o",
    events_from="log",
    cut=17,
    offset=99,
    rows=1234,
    events=5000,
    refused=0,
    seconds=2.0,
    likeness=EQUAL,
)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(
        source=Source(tables=["shop.*"]),
        lake=Lake(path=str(tmp_path / "lake")),
        kafka=Kafka(bootstrap_servers="127.0.0.1:1"),
        registry=Registry(url="http://127.0.0.1:1/"),
        state_dir=tmp_path / "state",
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "wal2lake.yaml"
    path.write_text("source: {tables: ['shop.*']}\nlake: {path: lake}\n")
    return path


def test_an_older_cut_can_be_replayed_only_into_another_place(file: Path) -> None:
    with pytest.raises(CdcError, match="--to needs --into") as caught:
        replay("shop.orders", to="17", config=file)
    assert caught.value.kind is ErrorKind.CONFIG


def test_an_existing_path_is_not_replaced(config: Config, tmp_path: Path) -> None:
    with pytest.raises(CdcError, match="this path exists already") as caught:
        refuse_taken(str(tmp_path))
    assert caught.value.kind is ErrorKind.CONFIG
    refuse_taken(str(tmp_path / "nothing"))
    options = ReplayOptions(table=TABLE, path=str(tmp_path), events_from="log", at=None)
    with pytest.raises(CdcError, match="this path exists already"):
        replay_into(config, options, say=print)


@pytest.mark.parametrize(
    ("lake", "path", "message"),
    [
        ("lake", "s3://box/copy", "the lake is on a local disk"),
        ("s3://box/lake", "gs://box/copy", "neither a directory nor a place in an object store"),
        ("s3://box/lake", "s3://me:secret@box/copy", "neither a directory nor a place"),
    ],
)
def test_a_place_that_the_session_cannot_write_to_is_refused(
    config: Config, lake: str, path: str, message: str
) -> None:
    with pytest.raises(CdcError, match=message) as caught:
        place_for(config.model_copy(update={"lake": Lake(path=lake)}), path)

    assert caught.value.kind is ErrorKind.CONFIG
    assert "secret" not in str(caught.value)


def test_a_place_is_written_as_all_readers_know_it(config: Config, tmp_path: Path) -> None:
    stored = config.model_copy(update={"lake": Lake(path="s3://box/lake")})

    assert place_for(stored, "s3://box/copy/") == "s3a://box/copy"
    assert place_for(stored, f"{tmp_path}/x/../y") == f"{tmp_path}/y"


def test_a_log_without_a_cut_is_refused(config: Config, tmp_path: Path) -> None:
    options = ReplayOptions(table=TABLE, path=str(tmp_path / "o"), events_from="log", at=None)

    with pytest.raises(CdcError, match="has no cut") as caught:
        replay_into(config, options, say=print)

    assert "--from kafka" in caught.value.remedy


def test_rebuild_is_for_all_tables_of_a_lake(file: Path) -> None:
    with pytest.raises(CdcError, match="it needs --all"):
        rebuild(config=file)
    with pytest.raises(CdcError, match="nothing is published yet"):
        rebuild(every=True, whence=EventsFrom.KAFKA, config=file)


def test_an_unknown_placeholder_is_not_invented(config: Config) -> None:
    """With a wrong one, placeholders would be applied as values."""
    addresses = Addresses.of(config)
    assert (addresses.kafka, addresses.registry) == (Broker("127.0.0.1:1"), "http://127.0.0.1:1")

    with pytest.raises(CdcError, match="not known on this machine") as caught:
        addresses.placeholder(config)
    assert "placeholder" in caught.value.remedy
    assert not config.state_dir.exists()

    StateDir(config.state_dir).create()
    (config.state_dir / "secrets" / "placeholder").write_text("the-token")
    assert addresses.placeholder(config) == "the-token"


def test_an_unconfigured_registry_is_refused(config: Config) -> None:
    with pytest.raises(CdcError, match="address of the schema registry is not configured"):
        Addresses.of(config.model_copy(update={"registry": Registry()}))


@pytest.mark.parametrize(
    ("likeness", "equal", "said"),
    [
        (EQUAL, True, "equal to the live table at cut 17: 1,234 rows"),
        (replace(EQUAL, added=2, swept=1), False, "2 more rows, 1 fewer, 0 different"),
        (replace(EQUAL, columns=("n",)), False, "different columns: n"),
        (None, None, "not compared: it is gone"),
    ],
)
def test_the_outcome_has_the_rows_and_the_comparison(
    likeness: Likeness | None, equal: bool | None, said: str
) -> None:
    outcome = replace(OUTCOME, likeness=likeness, not_compared="it is gone")

    first, last = sentences(outcome)

    assert "as of cut 17: 1,234 rows from 5,000 events, 2.0 s, 617 rows/s" in first
    assert said in last
    assert facts(outcome)["equal"] == equal
    assert facts(outcome)["rows_per_second"] == 617.0


@pytest.mark.parametrize("number", [0, 1, -1, 63, 64, -64, -65, 127, -128])
def test_integers_are_searched_in_avro_s_encoding(number: int) -> None:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, {"type": "int"}, number)
    assert _zigzag(number) == written.getvalue()


def test_a_row_of_a_reading_wins_over_events_up_to_its_offset() -> None:
    schema = TableSchema(
        table=TABLE, columns=(Column("id", "int"),), key=("id",), mode=TableMode.KEYED
    )

    plan = difference_plan(schema)

    assert plan.update_when == "source._cdc_offset >= target._cdc_offset"
    assert plan.delete_when == f"{plan.update_when} AND source._cdc_deleted"
