"""A reading is one commit, however many chunks it has. Postgres is simulated."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.declared import SourceColumn
from cdc.events.values.lake_types import PgType
from cdc.source.rows import reading, writing
from cdc.source.server.connection import Connection
from cdc.tables import TableId

TABLE = TableId("shop", "orders")
CHUNKS = 130


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Connection:
    """Return a connection whose table yields chunks of one row each."""

    def blocks(*_: object, **__: object) -> Iterator[bytes]:
        for number in range(CHUNKS):
            yield f'{number},"text, ""quoted"""\n'.encode()

    monkeypatch.setattr(writing, "blocks", blocks)
    return None  # type: ignore[return-value] # never used


COLUMNS = [
    SourceColumn(name=name, type="string", pg=PgType("text"), not_null=False, arrives=True)
    for name in ("a", "b")
]


def texts(path: Path) -> list[tuple[str, str]]:
    rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return [(row["c0"], row["c1"]) for row in rows]


def test_a_reading_of_many_chunks_is_one_commit(tmp_path: Path, connection: Connection) -> None:
    told: list[tuple[int, int, int]] = []

    found = reading.read(
        connection,
        TABLE,
        COLUMNS,
        str(tmp_path / "texts"),
        tell=lambda *said: told.append(said),
    )

    assert (found.chunks, found.rows) == (CHUNKS, CHUNKS)
    assert [chunks for chunks, _, _ in told] == list(range(1, CHUNKS + 1))
    table = DeltaTable(str(tmp_path / "texts"))
    assert table.version() == 1  # creation and one write
    assert len(table.file_uris()) == 1
    assert sorted(texts(tmp_path / "texts"), key=lambda row: int(row[0])) == [
        (str(number), 'text, "quoted"') for number in range(CHUNKS)
    ]


def test_an_error_ends_a_reading_without_a_commit(tmp_path: Path, connection: Connection) -> None:
    def enough(chunks: int, _rows: int, _bytes: int) -> None:
        if chunks == 3:
            raise CdcError(ErrorKind.CONFLICT, "ended", remedy="ask again")

    with pytest.raises(CdcError, match="ended") as caught:
        reading.read(connection, TABLE, COLUMNS, str(tmp_path / "texts"), tell=enough)
    assert (caught.value.kind, caught.value.remedy) == (ErrorKind.CONFLICT, "ask again")
    assert texts(tmp_path / "texts") == []
    assert DeltaTable(str(tmp_path / "texts")).version() == 0


class Stopped(BaseException):
    """Stands for the exception of a stopping job."""


def test_a_stop_of_the_job_is_raised_and_nothing_is_written(
    tmp_path: Path, connection: Connection
) -> None:
    def enough(*_: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        reading.read(connection, TABLE, COLUMNS, str(tmp_path / "texts"), tell=enough)
    assert texts(tmp_path / "texts") == []


def test_keys_are_queried_as_they_come(
    tmp_path: Path, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more keys are held than one query takes."""
    asked, taken, most = 0, 0, 0

    def blocks(*_: object, **__: object) -> Iterator[bytes]:
        nonlocal asked
        asked += reading.KEYS
        yield b"1,2\n"

    def keys() -> Iterator[tuple[str]]:
        nonlocal taken, most
        for number in range(20 * reading.KEYS):
            taken += 1
            most = max(most, taken - asked)
            yield (str(number),)

    monkeypatch.setattr(writing, "blocks", blocks)
    monkeypatch.setattr(reading, "key_columns", lambda *_: ())
    monkeypatch.setattr(reading, "rows_of_keys", lambda *_: None)
    path = str(tmp_path / "texts")
    found = reading.read_keys(connection, TABLE, COLUMNS, ["a"], keys(), path)

    assert found.rows == 20
    assert most <= reading.KEYS
    assert DeltaTable(path).version() == 1
