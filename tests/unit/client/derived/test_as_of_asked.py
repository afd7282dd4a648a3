"""Commands on derived tables know those that are joined with a table as it was."""

from pathlib import Path

import pytest

from cdc.client.derived.explain import explain
from cdc.config import load
from tests.unit.client.derived.test_histories_asked import PAST, Asked

THEN = (
    "SELECT o.id, o.n, c.n AS n_then FROM public.toasty AS o "
    "JOIN public.toasty FOR SYSTEM_TIME AS OF o._commit AS c ON c.id = o.id"
)


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path, past=PAST.replace("[n]", "[id, n]"), then=THEN)


def test_it_is_checked_with_its_history(asked: Asked) -> None:
    checked = {one["table"]: one for one in asked.run("check")["tables"]}

    assert checked["marts.then"]["inputs"] == ["marts.past"]


def test_it_is_previewed_verified_and_explained(asked: Asked) -> None:
    for n in (1, 2, 3):
        asked.publish(n)

    shown = asked.run("preview", "marts.then")
    assert [list(row.values()) for row in shown["rows"]] == [[1, 3, 1]]
    for cut in ("1", "2", "3"):
        verdicts = asked.run("verify", "--at", cut)["tables"]
        assert [(one["table"], one["equal"]) for one in verdicts] == [
            ("marts.past", True),
            ("marts.then", True),
        ]
    first, link, *_ = explain(load(asked.file), "marts.then").lines
    assert first == "marts.then is scoped by (id, n, n_then)"
    assert link.endswith("reaches the rows with c.id = o.id")


def test_the_source_is_not_asked_for_it(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.publish(1)
    found = asked.verify_by_source(monkeypatch)

    assert [one.table for one in found.tables] == ["marts.past", "marts.then"]
    assert all("the source cannot calculate histories" in one.reason for one in found.tables)
