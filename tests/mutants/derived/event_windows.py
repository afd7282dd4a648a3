"""Bugs of windows of event time: at their edges, of their keys, of times that are not there."""

from typing import Final

from tests.mutants.mutant import Mutant

_PRINTING: Final = "cdc/derive/sql/event_window_printing.py"
_READING: Final = "cdc/derive/sql/event_window_reading.py"
_KEPT: Final = ("tests/unit/derive/keep/test_windows.py",)
_READ: Final = ("tests/unit/derive/definition/test_event_windows.py",)
_SOURCE: Final = ("tests/source/derive/test_windows.py",)
EVENT_WINDOWS: Final = (
    Mutant(
        name="windows: exactly the gap apart is too far",
        file=_PRINTING,
        old=" <= {window.length}",
        new=" < {window.length}",
        tests=_KEPT,
    ),
    Mutant(
        name="windows: sessions of all keys are one",
        file=_PRINTING,
        old="_over([*keys, f",
        new="_over([f",
        tests=_KEPT,
    ),
    Mutant(
        name="windows: the remainder of a negative number is negative",
        file=_PRINTING,
        old="(({since}) % {slide} + {slide}) % {slide}",
        new="(({since}) % {slide})",
        tests=_KEPT,
    ),
    Mutant(
        name="windows: the origin is left out",
        file=_PRINTING,
        old=" + ({-window.origin})",
        new="",
        tests=_KEPT,
    ),
    Mutant(
        name="windows: a row hops once more than it may",
        file=_PRINTING,
        old="spelling.series(count - 1)",
        new="spelling.series(count)",
        tests=_KEPT,
    ),
    Mutant(
        name="windows: a time that is not there has a window",
        file=_PRINTING,
        old=" WHERE {_time(window)} IS NOT NULL",
        new="",
        tests=_KEPT,
    ),
    Mutant(
        name="windows: columns of the table are taken for the window's",
        file=_PRINTING,
        old="ON {_START} AND {_END} WHERE",
        new="ON TRUE WHERE",
        tests=_SOURCE,
    ),
    Mutant(
        name="windows: a long hop is a small number",
        file=_PRINTING,
        old="CAST({_STEP} AS BIGINT)",
        new="{_STEP}",
        tests=_SOURCE,
    ),
    Mutant(
        name="windows: windows leave gaps between them",
        file=_READING,
        old="    if length % slide:\n",
        new="    if slide % length:\n",
        tests=_READ,
    ),
    Mutant(
        name="windows: a column of wal2lake's own is a key",
        file=_READING,
        old='    columns = [time, *(rest[1:] if form == "sessions" else [])]\n',
        new="    columns = [time]\n",
        tests=_READ,
    ),
    Mutant(
        name="windows: the table is no input",
        file=_READING,
        old='    place.set("db", schema)\n',
        new="",
        tests=_READ,
    ),
)
