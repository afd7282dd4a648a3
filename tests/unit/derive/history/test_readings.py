"""A history takes readings of its table, and knows how far back it reaches."""

from pathlib import Path
from typing import Any

import pytest

from cdc.derive.history_step.reach import Kept
from cdc.errors import CdcError, ErrorKind
from tests.events.source import LARGE, Row
from tests.unit.derive.history.kept import KeptHistory, history
from tests.unit.derive.log.logged import LoggedSource

NAMES = ("id", "n", "_from_lsn", "_to_lsn", "_op", "_epoch")


def row(key: int, n: int) -> Row:
    return {"id": key, "n": n, **dict.fromkeys(LARGE)}


def quiet(source: LoggedSource, *rows: Row) -> None:
    """Let the source have rows without events, as where some never reached the log."""
    source.rows = {each["id"]: each for each in rows}
    source.held = {each["id"]: dict(each) for each in rows}


def both(kept: KeptHistory, *names: str) -> list[Any]:
    """Return the rows, which are the same when the history is made anew."""
    kept.bring()
    found, whole = kept.rows(*names), kept.rows()
    kept.bring(anew=True)
    assert kept.rows() == whole
    return found


def test_the_first_snapshot_by_copy_is_not_later_than_its_lsn(tmp_path: Path) -> None:
    kept = KeptHistory(tmp_path, history("n"))
    quiet(kept.source, row(1, 1), row(2, 2))
    kept.read(list(kept.source.rows.values()))
    kept.source.update(1, 5, {})
    kept.source.commit()

    found = both(kept, *NAMES, "_from")

    read = kept.readings[0].lsn
    assert [each[:-1] for each in found] == [
        (1, 1, read, 1000, "r", 1),
        (2, 2, read, None, "r", 1),
        (1, 5, 1000, None, "u", 1),
    ]
    assert [each[-1] is None for each in found] == [True, True, False]
    assert kept.at is not None
    assert (kept.at.begun, kept.at.since_lsn) == (1, read)


def test_a_reading_ends_and_begins_at_its_lsn(tmp_path: Path) -> None:
    """Hazard 39: no event says what it found; what comes behind it follows on."""
    kept = KeptHistory(tmp_path, history("n"))
    for key in (1, 2, 3):
        kept.source.insert(key, key, None)
    kept.source.commit()
    kept.bring()
    quiet(kept.source, row(1, 1), {**row(2, 7), "big": "unseen"}, row(4, 4))
    kept.read([kept.source.rows[2], kept.source.rows[4]], is_whole=False, deleted=[3])
    kept.source.update(2, 8, {})
    kept.source.commit()

    found = both(kept, *NAMES, "big")

    lsn = kept.readings[0].lsn
    assert found == [
        (1, 1, 1000, None, "c", 1, None),
        (2, 2, 1000, lsn, "c", 1, None),
        (3, 3, 1000, lsn, "c", 1, None),
        (2, 7, lsn, 1100, "r", 1, "unseen"),
        (4, 4, lsn, None, "r", 1, None),
        (2, 8, 1100, None, "u", 1, "unseen"),
    ]


def test_a_whole_reading_sweeps_what_it_does_not_have(tmp_path: Path) -> None:
    kept = KeptHistory(tmp_path, history("n"))
    for key in (1, 2):
        kept.source.insert(key, key, None)
    kept.source.commit()
    kept.bring()
    quiet(kept.source, {**row(1, 1), "bigj": "{}"})
    kept.read(list(kept.source.rows.values()))
    kept.bring()

    lsn = kept.readings[0].lsn
    assert kept.rows("id", "_from_lsn", "_to_lsn", "bigj") == [
        (1, 1000, None, "{}"),
        (2, 1000, lsn, None),
    ]


def test_no_version_reaches_from_one_epoch_into_the_next(tmp_path: Path) -> None:
    kept = KeptHistory(tmp_path, history("n"))
    kept.source.insert(1, 1, None)
    kept.source.commit()
    kept.bring()
    kept.epoch = 2
    kept.source.lsn = 500  # of another server
    kept.read([row(1, 1)])
    kept.source.update(1, 2, {})
    kept.source.commit()
    kept.bring()

    assert kept.rows(*NAMES) == [
        (1, 1, 1000, 2**63 - 1, "c", 1),
        (1, 1, 440, 500, "r", 2),
        (1, 2, 500, None, "u", 2),
    ]
    with pytest.raises(CdcError, match="no longer reaches so far back"):
        kept.bring(anew=True)
    assert len(kept.rows()) == 3


def test_a_history_that_would_reach_less_is_not_made_anew(tmp_path: Path) -> None:
    kept = KeptHistory(tmp_path, history("n"))
    kept.source.insert(1, 1, None)
    kept.source.commit()
    kept.bring()
    before = kept.rows()
    kept.kept = Kept(offset=0, marker_offset=0, readings=[])

    with pytest.raises(CdcError, match="has the history since") as anew:
        kept.bring(anew=True)
    kept.definition = history("n", "big")
    with pytest.raises(CdcError, match="no longer reaches so far back") as other:
        kept.bring()

    assert anew.value.kind is other.value.kind is ErrorKind.CONFLICT
    assert kept.rows() == before


def test_a_new_history_begins_where_the_log_does(tmp_path: Path) -> None:
    """The oldest whole reading behind what has expired; the events before it are gone."""
    kept = KeptHistory(tmp_path, history("n"))
    kept.source.insert(1, 1, None)
    kept.source.commit()
    kept.read([row(1, 1)])
    kept.source.update(1, 2, {})
    kept.source.commit()
    kept.read([row(1, 2)])
    kept.source.update(1, 3, {})
    kept.source.commit()
    second = kept.readings[1]
    kept.kept = Kept(offset=second.position.offset, marker_offset=0, readings=list(kept.readings))

    kept.bring()

    assert kept.rows(*NAMES) == [
        (1, 2, second.lsn, 1200, "r", 1),
        (1, 3, 1200, None, "u", 1),
    ]
    assert kept.at is not None
    assert (kept.at.begun, kept.at.since_lsn) == (2, second.lsn)


def test_a_table_without_a_tracked_column_is_refused(tmp_path: Path) -> None:
    kept = KeptHistory(tmp_path, history("m"))
    kept.source.insert(1, 1, None)
    kept.source.commit()
    with pytest.raises(CdcError, match="has no column m"):
        kept.bring()


def test_events_without_a_column_are_refused_and_a_new_history_begins_now(tmp_path: Path) -> None:
    """They do not say what was in it; the table says it for its rows of now."""
    old = KeptHistory(tmp_path, history("n"))
    old.source.insert(1, 1, None)
    old.source.commit()
    old.bring()
    before = old.rows()
    wanted = frozenset({"n", "added"})
    new = KeptHistory(tmp_path, history("n"), old.source, name="new", wanted=wanted)

    new.bring()

    assert old.rows() == before
    assert new.rows(*NAMES) == [(1, 1, 1000, None, "r", 1)]
    assert new.at is not None
    assert (new.at.begun, new.at.since_lsn) == (-1, 1000)
    new.wanted = frozenset()
    with pytest.raises(CdcError, match="no longer reaches so far back"):
        new.bring(anew=True)
