"""Keeps the admissions of late rows that operators ask for: a file each, until it is committed.

An admission says by its cut which rows its author has seen: later ones are no part of it. So it
does nothing more when it is done again.
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from cdc.state.atomic_file import write_shared
from cdc.state.submission import asked_now
from cdc.state.untrusted_json import read_or_none
from cdc.tables import TableId

_SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Says which late rows of a table are to be counted after all, and why."""

    id: str  # names its file; in the order in which they were asked for
    table: str  # of the late rows
    where: str  # a condition over the columns of its late rows
    reason: str
    cut: int  # the newest that the author saw; rows that were late afterwards are left alone
    asked_at: str  # ISO, with its zone
    asked_by: str


@dataclass(frozen=True, slots=True)
class Admissions:
    """Keeps the admissions that are asked for, below one directory."""

    folder: Path

    def ask(self, admission: Admission) -> None:
        """Ask for one; it waits until the job has done it."""
        file = self._file(admission)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_shared(file, json.dumps(asdict(admission)))

    def of(self, table: TableId) -> list[Admission]:
        """Return those of a table, the oldest first; files that are none are ignored."""
        try:
            files = sorted(self._folder(table).glob(f"*{_SUFFIX}"))
        except OSError:
            return []
        found = (_read(file) for file in files)
        return [one for one in found if one is not None and one.table == str(table)]

    def done(self, admission: Admission) -> None:
        """End one, if it still waits."""
        self._file(admission).unlink(missing_ok=True)

    def _file(self, admission: Admission) -> Path:
        return self._folder(TableId.parse(admission.table)) / f"{admission.id}{_SUFFIX}"

    def _folder(self, table: TableId) -> Path:
        """Return a directory for any table's name."""
        return self.folder / str(table).encode().hex()


def admissions(state_dir: Path) -> Admissions:
    """Return the admissions of a pipeline."""
    return Admissions(state_dir / "admissions")


def admission_now(table: TableId, where: str, reason: str, cut: int) -> Admission:
    """Return an admission that this process asks for now, having seen a cut."""
    asked = asked_now("derived late", [str(table)], {}, line="wal2lake derived late")
    return Admission(
        id=asked.id,
        table=str(table),
        where=where,
        reason=reason,
        cut=cut,
        asked_at=asked.asked_at,
        asked_by=asked.asked_by,
    )


def _read(file: Path) -> Admission | None:
    raw = read_or_none(file)
    types = {one.name: int if one.name == "cut" else str for one in fields(Admission)}
    if raw is None or {name: type(value) for name, value in raw.items()} != types:
        return None
    found = Admission(**raw)
    return found if found.id == file.stem else None
