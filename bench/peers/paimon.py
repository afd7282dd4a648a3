"""Reads what Paimon's snapshots hold, from its files: their times, rows and highest markers."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.whole.tables import MARKERS_FROM


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of one table; ``at`` is when it was committed, in seconds since 1970."""

    at: float
    rows: int
    highest: int  # marker; 0 before the first


def rows(table: Path) -> int:
    """Return the records of the table's newest snapshot, 0 before the first."""
    found = _files(table)
    return _total(json.loads(found[-1].read_text())) if found else 0


def snapshots(table: Path) -> list[Snapshot]:
    """Return all snapshots in order, with the highest marker that each holds."""
    highest, found = 0, []
    for file in _files(table):
        raw = json.loads(file.read_text())
        if raw["commitKind"] == "APPEND":
            highest = max([highest, *_markers(table, raw["deltaManifestList"])])
        found.append(Snapshot(raw["timeMillis"] / 1000, _total(raw), highest))
    return found


def torn_share(tables: Iterable[list[Snapshot]], began: float, ended: float) -> float:
    """Return the share of a time in which the newest snapshots hold different markers."""
    histories = list(tables)
    moments = sorted({one.at for history in histories for one in history if one.at > began})
    moments = [began, *(at for at in moments if at < ended), ended]
    torn = 0.0
    for at, until in pairwise(moments):
        seen = {max((s.highest for s in history if s.at <= at), default=0) for history in histories}
        torn += (until - at) * (len(seen) > 1)
    return torn / (ended - began)


def _files(table: Path) -> list[Path]:
    return sorted(
        (table / "snapshot").glob("snapshot-*"), key=lambda path: int(path.name.partition("-")[2])
    )


def _total(raw: dict[str, Any]) -> int:
    return int(raw.get("totalRecordCount") or 0)


def _markers(table: Path, manifest_list: str) -> list[int]:
    return [
        _highest(table / "bucket-0" / entry["_FILE"]["_FILE_NAME"])
        for manifest in _avro(table / "manifest" / manifest_list)
        for entry in _avro(table / "manifest" / manifest["_FILE_NAME"])
        if entry["_KIND"] == 0  # a file that was added
    ]


def _highest(file: Path) -> int:
    if not file.exists():
        return 0
    ids = pq.read_table(file, columns=["_KEY_id"])["_KEY_id"]
    found = pc.max(ids).as_py() or 0
    return found if found >= MARKERS_FROM else 0


def _avro(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as source:
        records: list[dict[str, Any]] = list(fastavro.reader(source))  # type: ignore[arg-type]
    return records
