"""Batches, what a table must hold after them, and what readers saw of a load."""

import json
import math
import os
import time
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from bench.apply.batch import APPEND, HOT, UNIFORM, Changes, Expected, Made
from bench.apply.cells import Cell, TimeBox, cells, table_sizes
from bench.core.figure import Figure, NotMeasured
from bench.core.process_tree import Sampler, usage
from bench.core.sizes import FULL
from bench.peers import paimon
from bench.peers.statements import job
from bench.reads.reads import stock
from bench.whole.load import Mark, freshness
from bench.whole.stages import quantile_of, stage_figures
from bench.whole.tables import MARKERS_FROM
from cdc.observe.recent_freshness import Reached
from cdc.observe.stage_times import Stage, StageTimes
from cdc.state import pace


@pytest.mark.parametrize(("keys", "deletes", "inserts"), [(UNIFORM, 100, 100), (APPEND, 20, 900)])
def test_a_batch_has_its_shares_and_each_key_once(keys: str, deletes: int, inserts: int) -> None:
    batch = Changes(made=Made(50_000), keys=keys, seed=1).batch(1_000)
    ids = batch.rows["id"].to_numpy()

    assert len(set(ids.tolist())) == len(ids) == 1_000
    assert batch.rows["deleted"].to_numpy().sum() == deletes
    assert (ids >= 50_000).sum() == inserts
    assert len(batch.written) == 1_000 - deletes
    assert (batch.low, batch.high) == (ids[ids < 50_000].min(), ids.max())


def test_hot_keys_are_the_newest() -> None:
    ids = Changes(made=Made(100_000), keys=HOT, seed=1).batch(100).rows["id"].to_numpy()

    assert ids.min() >= 98_000


def test_the_same_seed_makes_the_same_batches() -> None:
    one, other = (Changes(made=Made(1_000), keys=UNIFORM, seed=3) for _ in range(2))

    assert [one.batch(50).rows for _ in range(2)] == [other.batch(50).rows for _ in range(2)]


def test_makers_of_one_table_insert_new_keys_at_later_offsets() -> None:
    made, last, seen = Made(1_000), -1, set[int]()
    for keys in (UNIFORM, HOT, APPEND, UNIFORM):
        batch = Changes(made=made, keys=keys, seed=1).batch(100)
        inserted = [id_ for id_ in batch.rows["id"].to_pylist()[-10:] if id_ >= 1_000]
        offsets = batch.rows["_cdc_offset"].to_pylist()

        assert min(offsets) > last
        assert inserted
        assert not seen & set(inserted)
        last, seen = max(offsets), seen | set(inserted)


def test_what_a_table_must_hold_follows_every_batch() -> None:
    changes, expected = Changes(made=Made(1_000), keys=UNIFORM, seed=1), Expected(rows=1_000)
    rows = dict.fromkeys(range(1_000), 0)
    for _ in range(3):
        batch = changes.batch(100)
        expected.apply(batch)
        for row in batch.rows.to_pylist():
            if row["deleted"]:
                rows.pop(row["id"], None)
            else:
                rows[row["id"]] = row["revision"]

    assert expected.summary == (len(rows), sum(rows.values()))


def test_a_way_that_cannot_delete_keeps_the_rows() -> None:
    batch, expected = (
        Changes(made=Made(1_000), keys=UNIFORM, seed=1).batch(100),
        Expected(rows=1_000),
    )

    expected.apply(batch, upserts_only=True)

    assert expected.summary == (1_010, 90)


def test_the_cells_of_the_rows_to_be_reached_come_first() -> None:
    assert table_sizes(FULL)[0] == 10_000_000
    assert next(cells(FULL)) == Cell(UNIFORM, 10_000)
    assert len(list(cells(FULL))) == len(set(cells(FULL))) == 12


def test_a_time_box_is_of_one_way() -> None:
    box = TimeBox(10)
    box.spend("a", 10)

    assert (box.has_time("a"), box.has_time("b")) == (False, True)


def test_a_commit_is_fresh_when_the_first_reading_has_it() -> None:
    marks = [Mark(id=7, committed_at=10.0, lsn=1), Mark(id=8, committed_at=11.0, lsn=2),
             Mark(id=9, committed_at=12.0, lsn=3)]  # fmt: skip

    assert freshness(marks, [(10.5, 6), (11.5, 8), (13.0, 8)]) == ([1.5, 0.5], 1)


def test_stages_are_read_from_the_file_of_the_job(tmp_path: Path) -> None:
    (missing,) = stage_figures(tmp_path, 8)
    assert isinstance(missing, NotMeasured)

    times = StageTimes()
    with times.timed(Stage.LAND):
        pass
    reached = Reached(transactions=0, p50=math.nan, p99=math.nan)
    pace.write(
        tmp_path, 0.0, asked_seconds=1.0, reached=reached, stages=times.as_json(), freshness={},
        ways={},
    )  # fmt: skip
    found = {one.way if isinstance(one, Figure) else one.name: one
             for one in stage_figures(tmp_path, 8)}  # fmt: skip

    assert isinstance(land := found["land"], Figure)
    assert 0 < land.samples[50] <= land.samples[99]
    assert found["stage commit"] == NotMeasured(
        name="stage commit", why="the job has not counted it"
    )


def test_a_quantile_of_a_histogram_is_within_its_bucket() -> None:
    buckets = {"0.1": 0, "0.2": 10, "0.5": 0, "1": 10, "inf": 0}

    assert quantile_of(buckets, 0.25) == pytest.approx(0.15)
    assert quantile_of(buckets, 0.5) == pytest.approx(0.2)
    assert quantile_of(buckets, 0.75) == pytest.approx(0.75)
    assert quantile_of({"0.1": 0, "inf": 5}, 0.99) == 0.1


def test_a_process_that_works_has_used_the_processor() -> None:
    me = os.getpid()
    with Sampler(pids={"me": me}) as sampler:
        ends = time.process_time() + 0.1
        while time.process_time() < ends:
            sum(range(10_000))

    assert sampler.cpu_seconds["me"] >= 0.05  # the kernel counts in hundredths
    assert min(sampler.rss["me"]) > 2**20
    assert usage(2**22 + 1).cpu_seconds == 0


def test_the_log_that_a_reader_opens_begins_with_the_newest_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "table"
    for number in range(4):
        write_deltalake(str(path), pa.table({"id": [number]}), mode="append")
        if number == 2:
            DeltaTable(str(path)).create_checkpoint()

    found = stock(path)

    assert (found["data files"], found["files of the transaction log"]) == (4, 2)


MANIFESTS = {
    "type": "record", "name": "list",
    "fields": [{"name": "_FILE_NAME", "type": "string"}],
}  # fmt: skip
ENTRIES = {
    "type": "record", "name": "entry",
    "fields": [
        {"name": "_KIND", "type": "int"},
        {"name": "_FILE", "type": {"type": "record", "name": "file",
                                   "fields": [{"name": "_FILE_NAME", "type": "string"}]}},
    ],
}  # fmt: skip


def snapshot(table: Path, number: int, at: int, ids: list[int]) -> None:
    for name in ("snapshot", "manifest", "bucket-0"):
        (table / name).mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"_KEY_id": np.array(ids)}), table / "bucket-0" / f"d{number}")
    with (table / "manifest" / f"m{number}").open("wb") as file:
        entry = {"_KIND": 0, "_FILE": {"_FILE_NAME": f"d{number}"}}
        fastavro.writer(file, ENTRIES, [entry])
    with (table / "manifest" / f"l{number}").open("wb") as file:
        fastavro.writer(file, MANIFESTS, [{"_FILE_NAME": f"m{number}"}])
    raw = {"id": number, "commitKind": "APPEND", "timeMillis": at * 1000,
           "deltaManifestList": f"l{number}", "totalRecordCount": len(ids) * number}  # fmt: skip
    (table / "snapshot" / f"snapshot-{number}").write_text(json.dumps(raw))


def test_markers_are_read_from_the_files_of_a_snapshot(tmp_path: Path) -> None:
    assert paimon.rows(tmp_path) == 0
    snapshot(tmp_path, 9, 20, [1, 2])
    snapshot(tmp_path, 10, 30, [3, MARKERS_FROM + 5])

    found = paimon.snapshots(tmp_path)

    assert [(one.at, one.highest) for one in found] == [(20, 0), (30, MARKERS_FROM + 5)]
    assert paimon.rows(tmp_path) == 20


def test_tables_are_torn_while_their_newest_snapshots_differ() -> None:
    def of(*points: tuple[float, int]) -> list[paimon.Snapshot]:
        return [paimon.Snapshot(at, 0, highest) for at, highest in points]

    one, other = of((0, 1), (10, 2), (20, 3)), of((0, 1), (15, 2), (20, 3))

    assert paimon.torn_share([one, other], 0, 40) == pytest.approx(5 / 40)
    assert paimon.torn_share([one, one], 0, 40) == 0


def test_the_job_of_the_peer_has_a_source_and_a_sink_for_each_table(tmp_path: Path) -> None:
    text = job(
        "postgresql://me:p%40ss@127.0.0.1:5/db", ["t1", "t2"], tmp_path, checkpoint_seconds=1
    )

    assert text.count("INSERT INTO") == text.count("'postgres-cdc'") == 2
    assert "'password' = 'p@ss'" in text
    assert "'execution.checkpointing.interval' = '1 s'" in text
