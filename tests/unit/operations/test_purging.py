"""A purge deletes what is left of a removed table, and nothing else. Kafka is a stand-in."""

import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from cdc.config import Config, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.lake.layout import log_path, reading_path, readings_path
from cdc.lake.records.readings import Reading, Readings
from cdc.lake.table.positions import LandedPosition, Position
from cdc.operations import purging
from cdc.operations.desk.reporter import Reporter
from cdc.source.connector import worker_rest
from cdc.state.endpoints import Endpoints
from cdc.state.operation import Operation, OperationState, Progress, TableResult
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId

ENDPOINTS = Endpoints(source_url="", kafka=Broker("kafka"), connect="connect", registry="")
OLD, OTHER = TableId("shop", "old"), TableId("shop", "other")
INCLUDED = {"table.include.list": "shop[.]kept"}


class Lakes:
    """A lake with tables, a reading of each, and a log; it records which topics were emptied."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.config = Config(
            name="pipe",
            source=Source(tables=["shop.kept"]),
            lake=Lake(path=str(folder / "lake")),
            state_dir=folder / "state",
        )
        self.emptied: list[tuple[str, int | None]] = []
        self.captured = INCLUDED
        monkeypatch.setattr(purging, "empty_topic", self._empty)
        monkeypatch.setattr(worker_rest, "configuration", lambda *_: self.captured)
        landed = LandedPosition(epoch=1, landing=1, offsets={"pipe.shop.old": 41}, topic_ids={})
        self._write(log_path(self.config), landed.metadata())

    def _empty(self, broker: Broker, topic: str, *, before: int | None) -> bool:
        assert broker == Broker("kafka")
        self.emptied.append((topic, before))
        return True

    def _write(self, path: str, metadata: str) -> None:
        mark = CommitProperties(custom_metadata={"userMetadata": metadata})
        write_deltalake(path, pa.table({"a": [1]}), commit_properties=mark)

    def path(self, table: TableId) -> Path:
        return Path(self.config.lake.path, table.schema, table.name)

    def table(self, table: TableId) -> None:
        at = Position(epoch=1, offset=41)
        self._write(str(self.path(table)), at.metadata())
        index = Readings(readings_path(self.config))
        number = index.next_number()
        reading = reading_path(self.config, table, number)
        write_deltalake(reading, pa.table({"a": [1]}))
        index.add(
            Reading(
                number=number,
                table=str(table),
                whole=True,
                path=reading,
                version=0,
                position=at,
                lsn=1,
                cut=1,
                landing=1,
                operation="x",
                made_at=datetime.now(UTC),
            )
        )

    def purge(self, *tables: str) -> list[TableResult]:
        asked = Operation(id="1", command="purge", tables=tables, line="", asked_by="", asked_at="")
        begun = Progress(id=asked.id, state=OperationState.RUNNING)
        reporter = Reporter(self.config.state_dir, begun, threading.Event())
        purging.handler(Pipeline(self.config, ENDPOINTS), remove)(asked, reporter)
        return list(reporter.progress.results)


def remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lakes:
    return Lakes(tmp_path, monkeypatch)


def test_a_purge_deletes_table_topic_and_readings_and_nothing_else(lake: Lakes) -> None:
    for table in (OLD, OTHER):
        lake.table(table)
    index = Readings(readings_path(lake.config))

    (result,) = lake.purge("shop.old")

    assert not lake.path(OLD).exists()
    assert not Path(reading_path(lake.config, OLD, 1)).exists()
    assert [reading.table for reading in index.rows()] == ["shop.other"]
    assert DeltaTable(str(lake.path(OTHER))).to_pyarrow_table().num_rows == 1
    assert DeltaTable(reading_path(lake.config, OTHER, 2)).version() == 0
    assert lake.emptied == [("pipe.shop.old", 42)]  # where landing would continue
    assert result.note.endswith("its topic is empty")
    assert result.note.partition(" ")[0] != "0"


def test_an_interrupted_purge_can_be_repeated(lake: Lakes) -> None:
    lake.table(OLD)
    remove(str(lake.path(OLD)))
    purging.refuse_unknown(lake.config, [OLD])  # its readings still exist

    lake.purge("shop.old")

    with pytest.raises(CdcError) as caught:
        purging.refuse_unknown(lake.config, [OLD])
    assert caught.value.kind is ErrorKind.CONFIG


def test_a_table_of_the_configuration_or_of_the_connector_is_kept(lake: Lakes) -> None:
    lake.table(OLD)
    lake.captured = {"table.include.list": "shop[.]kept,shop[.]old"}
    refused = {}
    for name in ("shop.kept", "shop.old", "shop.a/b", "_wal2lake.log"):
        with pytest.raises(CdcError) as caught:
            lake.purge(name)
        refused[name] = caught.value.kind
    assert refused == {
        "shop.kept": ErrorKind.CONFIG,
        "shop.old": ErrorKind.CONFLICT,
        "shop.a/b": ErrorKind.CONFIG,
        "_wal2lake.log": ErrorKind.CONFIG,
    }
    assert lake.path(OLD).exists()
    assert lake.emptied == []


def test_a_table_that_somebody_else_wrote_is_not_deleted(lake: Lakes) -> None:
    write_deltalake(str(lake.path(OLD)), pa.table({"a": [1]}))

    with pytest.raises(CdcError) as caught:
        purging.refuse_unknown(lake.config, [OLD])
    assert caught.value.kind is ErrorKind.CONFLICT
