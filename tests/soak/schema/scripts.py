"""Run SQL files as ``pg_dump`` writes them: statements, and COPY followed by its rows."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.soak.schema.catalogue import Connection

_COPY: Final = re.compile(r"^COPY .* FROM stdin;$", re.IGNORECASE)
_END: Final = "\\."


def run(connection: Connection, path: Path) -> None:
    """Run a file; the statements between two COPYs are one transaction. Raise any error."""
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
    """Yield the text before each COPY, then the COPY with its rows; skip psql's commands."""
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
