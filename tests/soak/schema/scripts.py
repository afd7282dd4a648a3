"""Runs SQL files as ``pg_dump`` writes them: statements, and COPY with its rows behind it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.soak.schema.catalogue import Connection

_COPY: Final = re.compile(r"^COPY .* FROM stdin;$", re.IGNORECASE)
_END: Final = "\\."


def run(connection: Connection, path: Path) -> None:
    """What stands between two COPYs is one transaction; an error ends all."""
    with path.open(encoding="utf-8") as file:
        lines = iter(file)
        for statement, rows in _parts(lines):
            if rows is None:
                connection.execute(statement.encode())
            else:
                with connection.cursor().copy(statement.encode()) as copy:
                    for row in rows:
                        copy.write(row)


def _parts(lines: Iterator[str]) -> Iterator[tuple[str, Iterator[str] | None]]:
    """What stands before a COPY is sent as one; what psql itself would do is left out."""
    waiting: list[str] = []
    for line in lines:
        if _COPY.match(line.rstrip("\n")):
            yield "".join(waiting), None
            waiting = []
            yield line.rstrip().rstrip(";"), _rows(lines)
        elif not line.startswith("\\"):
            waiting.append(line)
    yield "".join(waiting), None


def _rows(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line.rstrip("\n") == _END:
            return
        yield line
