"""Bugs of late rows: what is judged by what, where a window ends, what a step remembers."""

from typing import Final

from tests.mutants.mutant import Mutant

_LATE: Final = "tests/unit/derive/late"
_RULE: Final = (f"{_LATE}/test_watermark.py",)
_CHANGED: Final = (f"{_LATE}/test_late_tables.py::test_rows_of_final_windows_change",)
_NOTED: Final = (f"{_LATE}/test_late_tables.py::test_a_late_row_is_put_aside",)
_BY_SCOPE: Final = (f"{_LATE}/test_late_steps.py::test_a_window_becomes_final_by_its_scope",)
_COMPARED: Final = (f"{_LATE}/test_late_steps.py::test_a_rebuild_that_finds_other_late_rows_stops",)
_WAITS: Final = f"{_LATE}/test_absence.py"
_HAZARD: Final = (f"{_WAITS}::test_an_unpaid_order_appears_when_no_payment_can_come_in_time",)
_SET_ASIDE: Final = (f"{_WAITS}::test_a_payment_that_is_late_is_put_aside",)
_IN_TIME: Final = (f"{_WAITS}::test_an_order_that_waits_has_each_payment_that_is_not_too_late",)
_HOPS: Final = f"{_LATE}/test_hops_aside.py"
_SESSIONS: Final = f"{_LATE}/test_sessions_aside.py"
_LOGGED: Final = ("tests/unit/derive/late_rows/test_captured_log.py",)


def _of(name: str, file: str, old: str, new: str, tests: tuple[str, ...]) -> Mutant:
    path = f"cdc/derive/{file}.py"
    return Mutant(name=f"late: {name}", file=path, old=old, new=new, tests=tests)


DERIVED_LATE: Final = (
    _of(
        "the watermark is that of the cut",
        "late/late_rows",
        "        for transaction in transactions:\n"
        "            closed = self.state.time(self.rule)\n",
        "        closed = self.state.time(self.rule)\n        for transaction in transactions:\n",
        _NOTED,
    ),
    _of(
        "a transaction is judged by its own watermark",
        "late/watermark",
        "            late=self.late + sum(is_late(event, closed, rule)",
        "            late=self.late + sum(is_late(event, replace(self, newest=_latest(self.newest, "
        "*present)).time(rule), rule)",
        _RULE,
    ),
    _of(
        "a window that ends at the watermark is open to rows",
        "late/rule",
        "self.end(one) <= watermark",
        "self.end(one) < watermark",
        _RULE,
    ),
    _of(
        "a row is late when all its windows are over, or for none",
        "late/rule",
        "if self.puts_hops_aside and",
        "if False and",
        (f"{_HOPS}::test_a_row_is_put_aside_in_the_windows_that_are_over",),
    ),
    _of(
        "a row that is late for one window is late for all",
        "late/rule",
        "self.end(one) <= watermark",
        "self.end(starts[0]) <= watermark",
        (f"{_HOPS}::test_a_row_is_put_aside_in_the_windows_that_are_over",),
    ),
    _of(
        "what is put aside in one window is in none",
        "engine/restored",
        'f"AND EPOCH_US(f.{START}) = EPOCH_US({_ROW}.{postgres_name(start)})"',
        '""',
        (f"{_HOPS}::test_a_row_is_put_aside_in_the_windows_that_are_over",),
    ),
    _of(
        "a session is of all rows that the source has",
        "engine/restored",
        "_windows(rule, _COUNTED)",
        "_windows(rule, rule.table)",
        (f"{_SESSIONS}::test_a_late_row_joins_no_session",),
    ),
    _of(
        "a row that moves leaves its final session",
        "engine/restored",
        "{_open(key, rows, start)} UNION ALL BY NAME {_kept(database, rows)}",
        "{_open(key, rows, start)}",
        (f"{_SESSIONS}::test_a_final_session_keeps_a_row_that_moves_or_goes",),
    ),
    _of(
        "a row of a session has no place but its key",
        "engine/restored",
        'f"AND EPOCH_US(f.{START}) = EPOCH_US({_ROW}.{postgres_name(start)})"',
        '""',
        (f"{_SESSIONS}::test_a_final_session_keeps_a_row_that_moves_or_goes",),
    ),
    _of(
        "a session is final while a row may still join it",
        "late/rule",
        "            return self._length\n",
        "            return 0\n",
        (f"{_SESSIONS}::test_what_is_emitted_stays",),
    ),
    _of(
        "a window that ends at the watermark is not final",
        "late/shown",
        "{time} <= {watermark",
        "{time} < {watermark",
        _BY_SCOPE,
    ),
    _of(
        "a row from the future closes every window",
        "late/watermark",
        "if time <= transaction.committed + FUTURE]",
        "if time <= transaction.committed + FUTURE**2]",
        _RULE,
    ),
    _of(
        "an update moves the watermark",
        "late/watermark",
        "if event.before is None and event.after is not None\n",
        "if event.after is not None\n",
        _RULE,
    ),
    _of(
        "a step judges what the last one judged",
        "late_rows/bringing",
        "self.read(known.place if known else {})",
        "self.read({})",
        _CHANGED,
    ),
    _of(
        "a step forgets which rows are frozen",
        "late_rows/bringing",
        "late.frozen() - taken.places",
        "set()",
        _CHANGED,
    ),
    _of(
        "a final window has the row that was left out",
        "engine/restored",
        "postgres_string(Effect.LEFT_OUT)",
        "postgres_string(Effect.KEPT)",
        _CHANGED,
    ),
    _of(
        "rows stay open that no change of an input reaches",
        "step/judged",
        "    if not late.emits_final:\n        return",
        '    if not late.emits_final:\n        return "" and',
        _BY_SCOPE,
    ),
    _of(
        "a rebuild compares nothing",
        "late_rows/bringing",
        "        if again and stored",
        "        if False and stored",
        _COMPARED,
    ),
    _of(
        "other commits do not count",
        "late_rows/captured_log",
        "if rule.idle is not None:",
        "if False:",
        _LOGGED,
    ),
    _of(
        "rows that waited are not looked for",
        "step/judged",
        'return f"{waiting} WHERE',
        'return "" and f"{waiting} WHERE',
        _HAZARD,
    ),
    _of(
        "a row that waits is final at its own time",
        "late/rule",
        "return 0 if self.shows_end else self.window.length",
        "return 0",
        _HAZARD,
    ),
    _of(
        "what comes when its bound is reached is in time",
        "definition/late_versions",
        "came = exp.LT(",
        "came = exp.LTE(",
        _SET_ASIDE,
    ),
    _of(
        "what goes when its bound is reached is gone",
        "definition/late_versions",
        "went = exp.GTE(",
        "went = exp.GT(",
        _IN_TIME,
    ),
    _of(
        "a row came with its first late event",
        "late/versions",
        "max({_MARK})",
        "min({_MARK})",
        _IN_TIME,
    ),
    _of(
        "what went had always been there",
        "late/versions",
        "lag({_MARK})",
        "lag(NULL::TIMESTAMPTZ)",
        (f"{_WAITS}::test_a_payment_that_came_too_late_and_went_was_never_there",),
    ),
)
