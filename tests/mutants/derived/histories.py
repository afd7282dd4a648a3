"""Bugs of histories, and of the slices of the log that they are made of."""

from typing import Final

from tests.mutants.mutant import Mutant

_VERSIONS: Final = ("tests/unit/derive/history/test_history.py",)
_READINGS: Final = ("tests/unit/derive/history/test_readings.py",)
_COLUMNS: Final = ("tests/unit/derive/history/test_other_columns.py",)
_SLICES: Final = ("tests/unit/derive/log/test_slices.py",)
_KEPT: Final = ("tests/unit/derive/keep/test_histories.py",)
_ASKED: Final = ("tests/unit/client/derived/test_histories_asked.py",)


def _of(name: str, file: str, old: str, new: str, tests: tuple[str, ...]) -> Mutant:
    path = f"cdc/derive/{file}.py"
    return Mutant(name=f"histories: {name}", file=path, old=old, new=new, tests=tests)


DERIVED_HISTORIES: Final = (
    _of(
        "each event of a transaction makes a version",
        "history/versions",
        "        return version.begin.lsn == self.last.lsn and version.epoch == self.epoch\n",
        "        return False\n",
        _VERSIONS,
    ),
    _of(
        "a transaction that changes nothing in the end makes a version",
        "history/versions",
        "if before is not None and self._is_same(before, values):",
        "if False:",
        _VERSIONS,
    ),
    _of(
        "a delete leaves its row open",
        "history/versions",
        "        old = self.current.pop(key, None)\n",
        "        old = self.current.get(key)\n",
        _VERSIONS,
    ),
    _of(
        "NULL is no other value",
        "history/versions",
        "    return bool(one == other) or",
        "    return None in (one, other) or bool(one == other) or",
        _VERSIONS,
    ),
    _of(
        "an untracked column stays as it was",
        "history/versions",
        "            self.current[key] = replace(old, values=values)\n            return\n",
        "            return\n",
        _VERSIONS,
    ),
    _of(
        "every column is tracked",
        "history_step/taking",
        "if name in (track or names)]",
        "if name in names]",
        _VERSIONS,
    ),
    _of(
        "versions are ordered by the clock",
        "history/versions",
        "    return Moment(event.lsn, time, later(last.clock, time))\n",
        "    return Moment(int(time.timestamp()) if time else event.lsn, time)\n",
        _VERSIONS,
    ),
    _of(
        "what a transaction ended is forgotten where its events are parted",
        "history_step/taking",
        "ended = self._store.of(keys, self._last)",
        "ended = {k: v for k, v in self._store.of(keys, self._last).items() if not v}",
        _VERSIONS,
    ),
    _of(
        "a TRUNCATE ends the rows that are here only",
        "history_step/store",
        "        self.load_all()\n        end(self.database",
        "        end(self.database",
        _VERSIONS,
    ),
    _of(
        "a reading sweeps nothing",
        "history_step/reading",
        'f"NOT EXISTS ({alike})" if reading.whole else',
        'f"{mentioned} AND NOT EXISTS ({alike})" if reading.whole else',
        _READINGS,
    ),
    _of(
        "a reading has no values of untracked columns",
        "history_step/reading",
        "    _renew(store, key)\n",
        "",
        _READINGS,
    ),
    _of(
        "a version reaches from one epoch into the next",
        "history_step/taking",
        "        if epoch != self._epoch:\n",
        "        if False:\n",
        _READINGS,
    ),
    _of(
        "events without a column have NULL there",
        "log/lacking",
        "        if missing:\n",
        "        if False:\n",
        _READINGS,
    ),
    _of(
        "a history that is made anew may reach less",
        "history_step/reach",
        "    if expired or (begun is None and old.begun) or",
        "    if",
        _READINGS,
    ),
    _of(
        "a history that is made anew may lose an epoch",
        "history_step/reach",
        " or old.since.epoch != upto.epoch:",
        ":",
        _READINGS,
    ),
    _of(
        "a step begins where the cut before was",
        "history_step/bringing",
        "return self._taken(table, since or Reach.of(facts), None)",
        "return self._taken(table, replace(Reach.of(facts), upto=self.upto), None)",
        _VERSIONS,
    ),
    _of(
        "a reading is before the events that it contains",
        "log/log_reader",
        "                offset = reading.position.offset\n",
        "                offset = after.offset\n",
        _SLICES,
    ),
    _of(
        "the two events of a changed key may be parted",
        "log/log_reader",
        "if following and following[0].moved else",
        "if False else",
        _SLICES,
    ),
    _of(
        "a value that did not change is NULL",
        "log/filled",
        "        values[number] = source[number]\n",
        "        values[number] = None\n",
        _SLICES,
    ),
    _of(
        "a refused event changes nothing of what follows",
        "log/filled",
        "        if change.key is not None:\n            state.unsure.add(change.key)\n",
        "",
        _SLICES,
    ),
    _of(
        "an event is of the transaction before",
        "log/ends",
        "        while wanted and wanted[-1] not in self._found:\n",
        "        while wanted and not self._found:\n",
        _SLICES,
    ),
    _of(
        "memory has older events too",
        "log/topic_rows",
        "        return topic in self.after and after >= self.after[topic]\n",
        "        return True\n",
        _SLICES,
    ),
    _of(
        "a history runs ahead of a table that is stopped",
        "keep/inputs_at",
        "if definition.history is not None and entry.state not in _FOLLOWS:",
        "if False:",
        _KEPT,
    ),
    _of(
        "a quiet table's place is forgotten",
        "keep/histories",
        "            self._reached[definition.table] = replace(reach, upto=upto, lsn=row.lsn)\n",
        "            pass\n",
        _KEPT,
    ),
    _of(
        "a version still holds at the LSN that ended it",
        "history/history",
        "{TO_LSN} > {lsn:d}",
        "{TO_LSN} >= {lsn:d}",
        _ASKED,
    ),
    _of(
        "a column that was made again is the old one",
        "history_step/own_columns",
        "            if known and numbers[name] != self.numbers[name]:\n",
        "            if False:\n",
        _COLUMNS,
    ),
    _of(
        "one of all columns has some of them",
        "history_step/own_columns",
        "        if added and not more:\n",
        "        if False:\n",
        _COLUMNS,
    ),
    _of(
        "the columns that the table gets are taken",
        "history_step/bringing",
        "            self._keep_columns(table, facts)\n",
        "            pass\n",
        _COLUMNS,
    ),
    _of(
        "one is made anew with any types",
        "history_step/own_columns",
        "    if others and not (anew and fits):\n",
        "    if others and not anew:\n",
        _COLUMNS,
    ),
    _of(
        "one goes on by another key",
        "history_step/own_columns",
        "        if self.key and tuple(self.key) != tuple(now.key):\n",
        "        if False:\n",
        _COLUMNS,
    ),
    _of(
        "nothing says which columns are its own",
        "history_step/bringing",
        "{**reach.facts(), **own.facts()}",
        "reach.facts()",
        _COLUMNS,
    ),
)
