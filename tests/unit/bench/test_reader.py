"""The independent reader follows a ledger, and reads markers only at the versions of a cut."""

import io
import json
import os
import threading
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from bench.whole.reader import follow, seen
from bench.whole.tables import MARKERS_FROM
from tests.waiting import until

NAMES = ["bench.t001", "bench.t002"]
ENTRY = pa.list_(pa.struct([("table", pa.string()), ("version", pa.int64())]))


def insert(lake: Path, name: str, *ids: int) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64())})
    write_deltalake(str(lake / name.replace(".", "/")), rows, mode="append")


def publish(lake: Path, cut: int, *versions: int) -> None:
    entries = [{"table": t, "version": v} for t, v in zip(NAMES, versions, strict=True)]
    row = {"cut": pa.array([cut], pa.int64()), "tables": pa.array([entries], ENTRY)}
    write_deltalake(str(lake / "_wal2lake" / "ledger"), pa.table(row), mode="append")


def test_a_marker_is_read_when_a_cut_has_it_in_all_tables(tmp_path: Path) -> None:
    for name in NAMES:
        insert(tmp_path, name, 1, 2)
    publish(tmp_path, 1, 0, 0)
    output, (stdin, stop) = tmp_path / "seen.jsonl", os.pipe()

    def read() -> None:
        with output.open("a", buffering=1) as lines, io.FileIO(stdin) as until_closed:
            follow(tmp_path, NAMES, lines, until_closed)

    thread = threading.Thread(target=read)
    thread.start()
    until(lambda: len(seen(output)) == 1, 30)
    insert(tmp_path, NAMES[0], MARKERS_FROM + 1)  # not in a cut yet
    publish(tmp_path, 2, 1, 0)  # in one table only
    until(lambda: len(seen(output)) == 2, 30)
    insert(tmp_path, NAMES[1], MARKERS_FROM + 1)
    publish(tmp_path, 3, 1, 1)
    until(lambda: len(seen(output)) == 3, 30)
    os.close(stop)
    thread.join()

    assert [highest for _, highest in seen(output)] == [2, 2, MARKERS_FROM + 1]
    assert all(json.loads(line)["at"] > 0 for line in output.read_text().splitlines())
