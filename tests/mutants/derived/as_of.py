"""Bugs of tables as they were, and of what histories note for them."""

from typing import Final

from tests.mutants.mutant import Mutant

_JOINED: Final = ("tests/unit/derive/as_of/test_as_of.py",)
_READ: Final = ("tests/unit/derive/definition/test_as_of_definition.py",)


def _of(name: str, file: str, old: str, new: str, tests: tuple[str, ...]) -> Mutant:
    path = f"cdc/derive/{file}.py"
    return Mutant(name=f"as of: {name}", file=path, old=old, new=new, tests=tests)


DERIVED_AS_OF: Final = (
    _of(
        "an update of a row is its insert",
        "history/versions",
        "inserted=(self.epoch, self.last.lsn) if before is None else before.inserted,",
        "inserted=(self.epoch, self.last.lsn),",
        _JOINED,
    ),
    _of(
        "a reading inserts what it finds changed",
        "history_step/reading",
        'f"coalesce(e.{COMMIT_LSN}, {begin.at.lsn:d})"',
        'f"{begin.at.lsn:d}"',
        _JOINED,
    ),
    _of(
        "a new epoch inserts all rows",
        "history_step/taking",
        "after, since = (self._epoch, END_OF_EPOCH), 0",
        "after, since = (epoch, reading.lsn), 0",
        _JOINED,
    ),
    _of(
        "what an epoch begins with begins at its reading",
        "history_step/taking",
        "after, since = (self._epoch, END_OF_EPOCH), 0",
        "after, since = (self._epoch, END_OF_EPOCH), reading.lsn",
        _JOINED,
    ),
    _of(
        "an epoch ends at the last event of each table",
        "history_step/taking",
        "last = Moment(END_OF_EPOCH, clock",
        "last = Moment(self._last.lsn + 1, clock",
        _JOINED,
    ),
    _of(
        "what a history begins with begins at its reading",
        "history_step/taking",
        "0 if is_first else reading.lsn",
        "reading.lsn",
        _JOINED,
    ),
    _of(
        "a reading found its rows so from the beginning",
        "history_step/taking",
        "0 if is_first else reading.lsn",
        "0",
        _JOINED,
    ),
    _of(
        "the clock goes back",
        "history/versions",
        "later(last.clock, time))",
        "time)",
        _JOINED,
    ),
    _of(
        "a step forgets the latest time",
        "history_step/taking",
        "clock=_time(reach.latest))",
        "clock=None)",
        _JOINED,
    ),
    _of(
        "a version that ended without a time is taken for ever",
        "as_of/rewriting",
        "{{past}}.{TO_LSN} IS NULL OR {{past}}.{VALID_TO} > {{at}}",
        "{{past}}.{VALID_TO} IS NULL OR {{past}}.{VALID_TO} > {{at}}",
        _JOINED,
    ),
    _of(
        "a snapshot begins with its first commit",
        "as_of/rewriting",
        "({{past}}.{VALID_FROM} IS NULL OR {{past}}.{VALID_FROM} <= {{at}})",
        "({{past}}.{VALID_FROM} <= {{at}})",
        _JOINED,
    ),
    _of(
        "a version still holds when the next begins",
        "as_of/rewriting",
        "{{past}}.{VALID_TO} > {{at}}",
        "{{past}}.{VALID_TO} >= {{at}}",
        _JOINED,
    ),
    _of(
        "a version begins after its time",
        "as_of/rewriting",
        "{{past}}.{VALID_FROM} <= {{at}}",
        "{{past}}.{VALID_FROM} < {{at}}",
        _JOINED,
    ),
    _of(
        "what a row's own transaction has done does not count",
        "as_of/rewriting",
        "{{past}}.{VALID_LSN} <= {{row}}.{COMMIT_LSN}",
        "{{past}}.{VALID_LSN} < {{row}}.{COMMIT_LSN}",
        _JOINED,
    ),
    _of(
        "a version still holds in the transaction that ends it",
        "as_of/rewriting",
        "{{past}}.{TO_LSN} > {{row}}.{COMMIT_LSN}",
        "{{past}}.{TO_LSN} >= {{row}}.{COMMIT_LSN}",
        _JOINED,
    ),
    _of(
        "LSNs of two epochs are compared",
        "as_of/rewriting",
        "{{past}}.{EPOCH} BETWEEN {{row}}.{COMMIT_EPOCH} AND {{row}}.{COMMIT_EPOCH} ",
        "TRUE ",
        _JOINED,
    ),
    _of(
        "every version of a row is one of its own",
        "as_of/rewriting",
        '        _add(select, source, f"{postgres_name(name)}.{TO_LSN} IS NULL")\n',
        "",
        _JOINED,
    ),
    _of(
        "a row without a time has the oldest version",
        "as_of/rewriting",
        'f"{{at}} IS NOT NULL AND (',
        'f"(',
        _JOINED,
    ),
    _of(
        "columns that are not tracked are taken",
        "as_of/choosing",
        "    for name, place in facts.columns.items():\n        if name not in has:\n",
        "    for name, place in facts.columns.items():\n        if name in ():\n",
        _READ,
    ),
    _of(
        "columns of which the table does not show are taken",
        "as_of/choosing",
        "    for name, place in facts.bare.items():\n        if name not in has:\n",
        "    for name, place in facts.bare.items():\n        if name in ():\n",
        _READ,
    ),
    _of(
        "the first of several histories is read",
        "as_of/choosing",
        "    if len(found) > 1:\n",
        "    if len(found) > 9:\n",
        _READ,
    ),
    _of(
        "an alternative is an equality",
        "as_of/reading",
        "conditions = on.flatten() if isinstance(on, exp.And) else [on]",
        "conditions = [on, *([] if on is None else on.find_all(exp.EQ))]",
        _READ,
    ),
    _of(
        "late rows are put aside from a table that is not read",
        "definition/as_of_definition",
        "late.table in written.by_rows",
        "late.table in ()",
        _READ,
    ),
    _of(
        "another history is the same definition",
        "definition/as_of_definition",
        "hash=sha256(json.dumps([definition.hash, text]).encode()).hexdigest(),",
        "hash=definition.hash,",
        _READ,
    ),
)
