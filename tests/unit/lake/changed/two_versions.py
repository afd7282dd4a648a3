"""The rows of two versions as delta-rs reads them, against those that are said to differ."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from cdc.derive.engine.inputs import rows
from cdc.lake.changed.changed_rows import ChangedRows, changed_rows, count_changed
from cdc.lake.commit.log_entry import added, removed
from cdc.lake.commit.snapshot import LogReader, state_at
from cdc.lake.files.store_of import store_of
from tests.unit.lake.commit.small_table import append_entry

MANY = 1_000_000


def bag(found: pa.Table) -> Counter[str]:
    """Return how often each row is there; NaN and NULL are values like any other."""
    return Counter(map(repr, found.to_pylist()))


def read(path: Path, version: int, columns: Sequence[str]) -> pa.Table:
    return rows(DeltaTable(str(path), version=version), list(columns)).read_all()


def names(path: Path) -> list[str]:
    return [field.name for field in DeltaTable(str(path)).schema().fields]


def differ(path: Path, old: int, new: int, columns: Sequence[str] | None = None) -> ChangedRows:
    """Return the rows that differ, after they were compared with the rows of both versions."""
    columns = columns or names(path)
    found = changed_rows(str(path), old, new, columns, MANY)
    assert found is not None
    before, after = bag(read(path, old, columns)), bag(read(path, new, columns))
    gone, come = bag(found.removed), bag(found.added)
    assert before - after == gone - come
    assert after - before == come - gone
    assert gone <= before + come
    assert count_changed(str(path), old, new) == len(found.removed) + len(found.added)
    return found


def check_all(path: Path, versions: Iterable[int]) -> None:
    """Compare each version with each later one."""
    listed = list(versions)
    for at, old in enumerate(listed):
        for new in listed[at:]:
            differ(path, old, new)


def restore(path: Path, version: int) -> int:
    """Make an older version the newest one, as RESTORE does, and return the new version."""
    store = store_of(str(path))
    now, then = LogReader(str(path)).newest(), state_at(store, version, None)
    actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": 0, "operation": "RESTORE"}}]
    here, there = set(now.files.items()), set(then.files.items())
    actions += [{"remove": removed(file, 0)} for _, file in sorted(here - there, key=str)]
    actions += [{"add": added(file)} for _, file in sorted(there - here, key=str)]
    append_entry(path, now.version + 1, actions)
    return now.version + 1
