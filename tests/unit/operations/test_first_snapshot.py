"""The first snapshot without Spark and source: which tables it has still to read."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdc.config import Config, Lake, Source
from cdc.lake.files.file_store import StoreError
from cdc.lake.table.positions import UNREAD
from cdc.operations.first_snapshot import handler
from cdc.operations.first_snapshot.handler import FirstSnapshot
from cdc.state.operation import TableResult
from cdc.tables import TableId
from tests.unit.desk_room import operation

READ: int = 3


class Told:
    """A reporter that keeps the results."""

    def __init__(self) -> None:
        self.results: list[TableResult] = []
        self.waits: list[float] = []

    def remaining(self, tables: tuple[str, ...]) -> list[str]:
        return [name for name in tables if name not in {one.table for one in self.results}]

    def done(self, result: TableResult) -> None:
        self.results.append(result)

    def tell(self, **_: object) -> None:
        pass

    def refuse_ended(self) -> None:
        pass

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


def live(name: str, *, reading: int, stopped: bool = False) -> Any:  # noqa: ANN401 - a stand-in
    return SimpleNamespace(
        schema=SimpleNamespace(table=TableId("a", name)),
        position=SimpleNamespace(reading=reading, rows_applied=7, refused=0),
        stopped=stopped,
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Return the tables that were asked for in the source, which has none of them."""
    seen: list[set[str]] = []

    def sources(_: object, waiting: dict[TableId, object]) -> list[object]:
        seen.append({str(name) for name in waiting})
        return []

    monkeypatch.setattr(handler._Run, "_sources", sources)
    monkeypatch.setattr(handler, "remove", lambda *_: None)
    monkeypatch.setattr(handler, "settle_earlier", lambda *_: None)
    return seen


def test_a_later_attempt_reads_what_has_no_rows_yet_and_is_still_captured(
    tmp_path: Path, asked: list[set[str]]
) -> None:
    """A table may leave the configuration meanwhile; it must not keep the others."""
    tables = [
        live("read", reading=READ),
        live("unread", reading=UNREAD),
        live("stopped", reading=UNREAD, stopped=True),
    ]
    context: Any = SimpleNamespace(
        config=Config(source=Source(tables=["a.*"]), lake=Lake(path=str(tmp_path))),
        spark=None,
        tables={str(table.schema.table): table for table in tables},
        topic=str,
        await_streaming=lambda *_: None,
    )
    names = ("a.gone", "a.read", "a.stopped", "a.unread")
    wanted: Any = SimpleNamespace(id=operation().id, tables=names)
    told: Any = Told()

    FirstSnapshot(context)(wanted, told)

    assert asked == [{"a.unread"}]
    assert [(one.table, one.rows_read) for one in told.results] == [("a.read", 7)]


def test_a_store_that_does_not_answer_stops_no_table_and_is_asked_again(
    tmp_path: Path, asked: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, silences = live("unread", reading=UNREAD), iter([True, True, False])
    found = handler._Run._sources

    def sources(run: Any, tables: dict[TableId, object]) -> list[object]:  # noqa: ANN401
        if next(silences):
            raise StoreError("put a/b: no answer of the object store")
        return list(found(run, tables))  # type: ignore[arg-type]

    monkeypatch.setattr(handler._Run, "_sources", sources)
    context: Any = SimpleNamespace(
        config=Config(source=Source(tables=["a.*"]), lake=Lake(path=str(tmp_path))),
        spark=None,
        tables={"a.unread": waiting},
        topic=str,
        await_streaming=lambda *_: None,
    )
    wanted: Any = SimpleNamespace(id=operation().id, tables=("a.unread",))
    told: Any = Told()

    FirstSnapshot(context)(wanted, told)

    assert asked == [{"a.unread"}]
    assert len(told.waits) == 2
