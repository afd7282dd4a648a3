"""Reads the lake in a process of its own, by delta-rs and with nothing of wal2lake's code.

Run as ``python -m bench.whole.reader <lake> <tables> <output>``. It follows the ledger, opens the
marked tables at the versions of each new cut, reads the highest marker in each, and writes when it
had it. It ends when its standard input is closed.
"""

import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, TextIO

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

LEDGER: Final = "_wal2lake/ledger"
LOOK_SECONDS: Final = 0.02
_NEWEST: Final = "select tables from t where cut = (select max(cut) from t)"
_HIGHEST: Final = "select max(id) as highest from t where id > {}"


def main() -> None:
    """Read until standard input ends."""
    lake, tables, output = Path(sys.argv[1]), sys.argv[2].split(","), Path(sys.argv[3])
    with output.open("a", buffering=1) as lines:
        follow(lake, tables, lines, sys.stdin)


def follow(lake: Path, tables: list[str], lines: TextIO, until_closed: IO[Any]) -> None:
    """Write a line for each cut, with the highest marker that all tables have in it."""
    ledger, version, highest = lake / LEDGER, -1, dict.fromkeys(tables, 0)
    opened: dict[str, int] = {}
    while not select.select([until_closed], [], [], LOOK_SECONDS)[0]:
        newest = _newest_version(ledger, version)
        if newest == version:
            continue
        version = newest
        for name, at in _versions(ledger, version).items():
            if name in highest and opened.get(name) != at:
                opened[name] = at
                highest[name] = _highest(lake, name, at, highest[name])
        lines.write(json.dumps({"at": time.time(), "highest": min(highest.values())}) + "\n")


def _newest_version(ledger: Path, version: int) -> int:
    if version < 0:
        return DeltaTable(str(ledger)).version()  # its first entries may be cleaned away
    while (ledger / "_delta_log" / f"{version + 1:020d}.json").exists():
        version += 1
    return version


def _versions(ledger: Path, version: int) -> dict[str, int]:
    for row in _query(DeltaTable(str(ledger), version=version), _NEWEST):
        return {entry["table"]: entry["version"] for entry in row["tables"]}
    return {}


def _highest(lake: Path, name: str, version: int, known: int) -> int:
    table = DeltaTable(str(lake / name.replace(".", "/")), version=version)
    (row,) = _query(table, _HIGHEST.format(known))
    return int(row["highest"] or known)


def _query(table: DeltaTable, text: str) -> list[dict[str, Any]]:
    found = pa.table(QueryBuilder().register("t", table).execute(text).read_all())
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


@contextmanager
def reading(lake: Path, tables: list[str], output: Path) -> Iterator[None]:
    """Run the reader as a process of its own for the duration of a ``with`` block."""
    line = [sys.executable, "-m", "bench.whole.reader", str(lake), ",".join(tables), str(output)]
    log = output.with_suffix(".log").open("wb")
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        yield
    finally:
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        process.stdin.close()
        process.wait()
        log.close()


def seen(output: Path) -> list[tuple[float, int]]:
    """Return what the reader wrote: times, and the highest marker that it had read."""
    lines = output.read_text().splitlines() if output.exists() else []
    return [(line["at"], line["highest"]) for line in map(json.loads, lines)]


if __name__ == "__main__":
    main()
