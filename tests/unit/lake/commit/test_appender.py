"""An append from this process: what independent readers see, and what is left to Spark."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit import appender as module
from cdc.lake.commit.appender import MEASURED, Appender
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.snapshot import checkpoint_name
from cdc.lake.commit.statistics import statistics
from cdc.lake.table.positions import position
from tests.unit.lake.commit.small_table import actions, append_entry, at, seen

TYPES: dict[str, Any] = {"id": "long", "value": "binary"}
PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}


def metadata(**changed: object) -> dict[str, Any]:
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in TYPES.items()]
    return {
        "id": "96031e94-b54d-4054-bc93-982557bc2aee",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {MEASURED: "1", "delta.checkpointInterval": "3"},
        "createdTime": 0,
        **changed,
    }


def make(path: Path, protocol: object = PLAIN, **changed: object) -> Appender:
    info = {"timestamp": 0, "operation": "WRITE", "userMetadata": at(0).metadata()}
    described = metadata(**changed)
    append_entry(path, 0, [{"commitInfo": info}, {"protocol": protocol}, {"metaData": described}])
    return Appender(str(path), TYPES)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "value": pa.array([b"v"] * len(ids))})


def test_rows_are_appended_with_the_position(tmp_path: Path) -> None:
    appender = make(tmp_path)

    versions = [appender.append(rows(1, 2), at(2).metadata()), appender.append(rows(3), "{}")]

    assert versions == [1, 2]
    assert [row["id"] for row in seen(tmp_path)] == [1, 2, 3]
    assert [row["value"] for row in seen(tmp_path)] == [b"v"] * 3
    assert actions(tmp_path, 1)[0]["commitInfo"]["userMetadata"] == at(2).metadata()


def test_only_the_first_columns_have_statistics(tmp_path: Path) -> None:
    make(tmp_path).append(rows(7, 5), at(1).metadata())

    [_, add] = actions(tmp_path, 1)
    assert json.loads(add["add"]["stats"]) == {
        "numRecords": 2,
        "minValues": {"id": 5},
        "maxValues": {"id": 7},
        "nullCount": {"id": 0},
        "tightBounds": True,
    }


def test_a_commit_of_another_writer_comes_before(tmp_path: Path) -> None:
    appender, other = make(tmp_path), Appender(str(tmp_path), TYPES)
    appender.append(rows(1), "{}")
    other.append(rows(2), "{}")

    assert appender.append(rows(3), at(3).metadata()) == 3
    assert [row["id"] for row in seen(tmp_path)] == [1, 2, 3]
    assert position(str(tmp_path)) == at(3)


def test_nothing_is_appended_if_another_commit_comes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    appender, other = make(tmp_path), Appender(str(tmp_path), TYPES)
    measured = statistics

    def with_another(of: pa.Table, names: list[str]) -> str:
        monkeypatch.undo()
        other.append(rows(2), "{}")
        return measured(of, names)

    monkeypatch.setattr(module, "statistics", with_another)
    with pytest.raises(CdcError) as raised:
        appender.append(rows(1), "{}")

    assert raised.value.kind is ErrorKind.CONFLICT
    assert [row["id"] for row in seen(tmp_path)] == [2]


def test_a_checkpoint_is_written_when_it_is_due_and_read_by_the_next(tmp_path: Path) -> None:
    appender = make(tmp_path)
    for number in range(4):
        appender.append(rows(number), at(number).metadata())

    assert (tmp_path / checkpoint_name(3)).exists()
    assert not (tmp_path / checkpoint_name(2)).exists()
    for version in range(3):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    assert Appender(str(tmp_path), TYPES).append(rows(4), at(4).metadata()) == 5
    assert [row["id"] for row in seen(tmp_path)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "changed",
    [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}},
        {"configuration": {MEASURED: "1", "delta.enableChangeDataFeed": "true"}},
        {"configuration": {}},
        {"configuration": {MEASURED: "-1"}},
        {"partitionColumns": ["id"]},
        {"schemaString": json.dumps({"type": "struct", "fields": []})},
        {
            "schemaString": json.dumps(
                {
                    "fields": [
                        {"name": n, "type": t, "nullable": n != "id", "metadata": {}}
                        for n, t in TYPES.items()
                    ]
                }
            )
        },
    ],
)
def test_a_table_that_asks_for_more_is_left_to_spark(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    appender = make(tmp_path, **changed)

    with pytest.raises(TakeMergeError):
        appender.append(rows(1), "{}")
    assert list(tmp_path.glob("*.parquet")) == []


def test_rows_of_other_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="other columns"):
        make(tmp_path).append(pa.table({"id": [1]}), "{}")
