"""Every way in which a table of the lake is written without Spark, each as one work."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc.derive.late_rows.rows_commit import add_rows
from cdc.derive.step.mark import Mark
from cdc.lake.commit.alter import alter_without_spark
from cdc.lake.commit.alteration import SetProperties
from cdc.lake.commit.appender import MEASURED, Appender
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.log_entry import Origin
from cdc.lake.commit.row_files import RowFiles
from cdc.lake.create.first_entry import create_plain_table, create_table
from cdc.lake.create.linked_table import link_table
from cdc.lake.create.whole_table import replace_table
from cdc.lake.files.store_of import store_of
from cdc.lake.records.ledger import Ledger
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.upkeep import control_tables
from cdc.lake.upkeep.old_versions import clean
from cdc.lake.upkeep.strays import delete_strays
from tests.objects.test_commits import FIELDS, PROPERTIES, add, at, cut, refused, rows

TYPES: Final = {"id": "integer", "name": "string"}
Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class CommitPath:
    """One way: ``begin`` prepares the table at a path, and returns the work that is watched."""

    begin: Callable[[str], Work]
    columns: str = "id"


def _table(path: str) -> Committer:
    create_table(path, FIELDS, PROPERTIES, at(0).metadata())
    return Committer(path)


def _created(path: str) -> Work:
    return lambda: create_table(path, FIELDS, PROPERTIES, at(0).metadata())


def _committed(path: str) -> Work:
    committer = _table(path)
    file = add(committer, 1, 2)

    def work() -> None:
        committer.commit(rows(committer, 3), {file: [0]}, at(3))

    return work


def _appended(path: str) -> Work:
    committer = _table(path)

    def work() -> None:
        with RowFiles(store_of(path), committer.open().metadata, file_bytes=1) as files:
            files.add(rows(committer, 1))
            files.add(rows(committer, 2))
        committer.open()
        committer.append(files.files, at(2))

    return work


def _combined(path: str) -> Work:
    committer = _table(path)
    for number in range(3):
        add(committer, number)

    def work() -> None:
        done = committer.combining(list(committer.open().files.values()))()
        committer.open()
        committer.take_place(done, at(2))

    return work


def _logged(path: str) -> Appender:
    create_plain_table(path, FIELDS[:2], {MEASURED: "1"}, at(0).metadata())
    return Appender(path, TYPES)


def _event(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int32()), "name": [str(number)]})


def _landed(path: str) -> Work:
    appender = _logged(path)
    return lambda: [appender.append(_event(n), at(n).metadata()) for n in range(2)]


def _log_combined(path: str) -> Work:
    appender = _logged(path)
    for number in range(3):
        appender.append(_event(number), at(number).metadata())

    def work() -> None:
        files = appender.files()
        made = appender.combining(files)()
        appender.take_place(files, made, at(2).metadata())

    return work


def _replaced(path: str) -> Work:
    add(_table(path), 1)
    whole = pa.table({"id": [7], "name": ["n7"], "_cdc_offset": [7]})
    return lambda: replace_table(path, FIELDS, PROPERTIES, whole, at(7).metadata())


def _linked(path: str) -> Work:
    committer = _table(f"{path}-origin")
    add(committer, 1, 2)
    files = list(committer.open().files.values())
    origin = Origin(
        read_version=-1, millis=1, metadata=at(2).metadata(), transaction="1", counts={}
    )
    return lambda: link_table(f"{path}-origin", files, path, origin)


def _altered(path: str) -> Work:
    add(_table(path), 1)
    changes = {"delta.checkpointInterval": "7"}
    return lambda: alter_without_spark(path, SetProperties(changes), at(1).metadata())


def _cleaned(path: str) -> Work:
    committer = _table(path)
    committer.commit(rows(committer, 3), {add(committer, 1): [0]}, at(3))
    assert committer.checkpoint(2)
    store_of(path).write("stray.parquet", b"x")

    def work() -> None:
        clean(path, time.time() + 60)
        delete_strays(path, time.time() + 60)

    return work


def _checkpointed(path: str) -> Work:
    committer = _table(path)
    for number in range(3):
        add(committer, number)

    def work() -> None:
        assert committer.checkpoint(3)
        add(Committer(path), 4)

    return work


def _published(path: str) -> Work:
    ledger = Ledger(path)
    ledger.append(cut(1))
    return lambda: _each(lambda number: ledger.append(cut(number)))


def _refused(path: str) -> Work:
    quarantine = Quarantine(path)
    quarantine.add([refused(1)])
    return lambda: _each(lambda number: quarantine.add([refused(number)]))


def _late(path: str) -> Work:
    mark = Mark(definition="d", cut=1, epoch=1, lsn=1)
    late = pa.table({"id": [1]})
    add_rows(path, late, mark, 1, anew=True)
    return lambda: _each(lambda _: add_rows(path, late, mark, 1, anew=False))


def _each(write: Callable[[int], None]) -> None:
    """Write twice: the second commit has the first one's files to combine."""
    for number in (2, 3):
        write(number)


PATHS: Final[Mapping[str, CommitPath]] = {
    "created": CommitPath(_created),
    "committed": CommitPath(_committed),
    "appended": CommitPath(_appended),
    "combined": CommitPath(_combined),
    "landed": CommitPath(_landed),
    "log combined": CommitPath(_log_combined),
    "replaced": CommitPath(_replaced),
    "linked": CommitPath(_linked),
    "altered": CommitPath(_altered),
    "cleaned": CommitPath(_cleaned),
    "checkpointed": CommitPath(_checkpointed),
    "published": CommitPath(_published, "cut"),
    "refused": CommitPath(_refused, '"offset"'),
    "late rows": CommitPath(_late),
}


@contextmanager
def combining_often() -> Iterator[None]:
    """Have tables that delta-rs writes combined after every other commit, and vacuumed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_tables, "FILES", 2)
        patch.setattr(control_tables, "RETENTION_HOURS", 0)
        yield


def content(path: str, columns: str) -> tuple[int, Any, list[Any]]:
    """Return version, what the newest commit says, and rows, as delta-rs alone reads them."""
    opened = DeltaTable(path)
    found = QueryBuilder().register("t", opened).execute(f"SELECT {columns} FROM t ORDER BY 1")
    values = [tuple(row.values()) for row in pa.table(found.read_all()).to_pylist()]
    return opened.version(), opened.history(1)[0].get("userMetadata"), values
