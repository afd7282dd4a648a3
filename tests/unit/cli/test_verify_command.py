"""What ``verify`` prints of tables that are behind the cut, and of those that differ at it."""

import io

from rich.console import Console

from cdc.cli.verify import facts, show
from cdc.client.verify.compare import Comparison, KeyDifference
from cdc.client.verify.verdict import TableVerdict
from cdc.client.verify.verify import VerifyReport
from cdc.tables import TableState

MISSING = KeyDifference(key=("7",), kind="missing")


def verdict(table: str, state: TableState, missing: int = 0, reason: str = "") -> TableVerdict:
    """Return the verdict on a table of ten rows of which so many are missing in the lake."""
    comparison = Comparison(source_rows=10, lake_rows=10 - missing, missing=missing)
    comparison.keys = [MISSING] if missing else []
    return TableVerdict(
        table=table, comparison=comparison, state=state.value, reason=reason, key=("id",)
    )


def report(*verdicts: TableVerdict) -> VerifyReport:
    """Return a report of these verdicts."""
    return VerifyReport(cut=3, lsn=99, seconds=1.0, tables=verdicts)


def printed(*verdicts: TableVerdict) -> str:
    """Return what is printed of them."""
    out = io.StringIO()
    show(report(*verdicts), Console(file=out, width=120, color_system=None))
    return out.getvalue()


def line(text: str, table: str) -> str:
    """Return the first line of the text that names the table."""
    return next(each for each in text.splitlines() if table in each)


def test_a_table_whose_rows_are_being_read_is_not_called_different() -> None:
    text = printed(
        verdict("a.first", TableState.SNAPSHOTTING, missing=10),
        verdict("a.again", TableState.RESNAPSHOTTING, missing=1),
        verdict("a.good", TableState.STREAMING),
    )

    for table, state in (("a.first", "snapshotting"), ("a.again", "resnapshotting")):
        assert line(text, table).rstrip().endswith(state)
        assert f"{table}: its rows are being read" in text
    assert "different" not in text
    assert "missing id" not in text
    assert "wal2lake sync" in text
    assert text.splitlines()[-1].startswith("not all tables can be compared yet: ")


def test_a_table_that_differs_is_named_also_beside_one_that_is_being_read() -> None:
    text = printed(
        verdict("a.first", TableState.SNAPSHOTTING, missing=10),
        verdict("a.bad", TableState.STREAMING, missing=1),
    )

    assert line(text, "a.bad").rstrip().endswith("different")
    assert "a.bad: missing id=7" in text
    assert text.splitlines()[-1].startswith("different: ")


def test_a_table_that_is_being_read_and_has_all_rows_is_equal() -> None:
    text = printed(verdict("a.again", TableState.RESNAPSHOTTING))

    assert text.splitlines()[-1].startswith("equal: ")


def test_a_stopped_table_that_lacks_rows_is_different() -> None:
    text = printed(verdict("a.stopped", TableState.STOPPED, missing=2, reason="it was dropped"))

    assert line(text, "a.stopped").rstrip().endswith("different")
    assert "stopped: it was dropped" in text


def test_the_facts_of_a_table_that_is_being_read_say_so() -> None:
    found = facts(report(verdict("a.first", TableState.SNAPSHOTTING, missing=10)))

    assert found["equal"] is False
    [table] = found["tables"]
    assert (table["state"], table["being_read"]) == ("snapshotting", True)
