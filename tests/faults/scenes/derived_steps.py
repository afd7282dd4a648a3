"""Triggers of the steps of derived tables."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tests.faults.bank.armed import Armed
from tests.faults.scenes.running import APPLY, COMMAND_SECONDS, Await, running
from tests.waiting import until

_DERIVED: Final = {
    "debits": "SELECT sum(amount) AS amount FROM bank.debits",
    "credits": "SELECT sum(amount) AS amount FROM bank.credits",
    "both": "SELECT d.amount AS debits, c.amount AS credits FROM marts.debits d"
    " CROSS JOIN marts.credits c",
    "pages": "SELECT who, count(*) AS n FROM bank.visits GROUP BY who",
    "hours": "/* ---\nlate: {column: at, allowed: 1 minute}\n--- */\n"
    "SELECT who, window_start, count(*) AS n "
    "FROM tumble(bank.visits, at, interval '1 hour') v GROUP BY who, window_start",
}


def derived(bank: Armed, _name: str, await_kills: Await) -> None:
    """Derive more tables, one over the others; after the kills they equal their queries."""
    texts = {f"marts.{name}": query for name, query in _DERIVED.items()}
    with _declared(bank, texts), running(bank, *APPLY):
        await_kills()


def cleared(bank: Armed, _name: str, await_kills: Await) -> None:
    """Take a version away from a derived table; it is made anew."""
    table = "marts.lost"
    with _declared(bank, {table: _DERIVED["debits"]}):
        bank.run(*APPLY)
        bank.sync()
        log = bank.folder / "lake" / table.replace(".", "/") / "_delta_log"
        max(log.glob("*.json")).unlink()
        await_kills()
    shutil.rmtree(log.parent)


@contextmanager
def _declared(bank: Armed, texts: Mapping[str, str]) -> Iterator[None]:
    """Declare derived tables during the block; after it they equal their queries."""
    new = {name: bank.folder / "derived" / f"{name}.sql" for name in texts}
    for name, file in new.items():
        file.write_text(texts[name])
    yield
    bank.sync()
    until(lambda: _equal(bank, new), COMMAND_SECONDS)
    for file in new.values():
        file.unlink()
    bank.run(*APPLY)


def _equal(bank: Armed, tables: Iterable[str]) -> bool:
    """Return whether derived tables are at the newest cut; no row of them may be another."""
    report = bank.any_facts("derived", "verify", *tables)
    assert not any(each["missing"] or each["extra"] for each in report["tables"]), report
    return bool(report["equal"])


def admitted(bank: Armed, name: str, await_kills: Await) -> None:
    """Have a row counted that came late; afterwards it is admitted once."""
    until(lambda: _late(bank, "left out"), COMMAND_SECONDS)
    first, *_ = _late(bank, "left out")
    where = f"counter = {first['counter']} AND version = {first['version']}"
    asked = ("--admit", where, "--reason", name, "--timeout", str(COMMAND_SECONDS))
    with running(bank, "derived", "late", "kept.windows", *asked):
        await_kills()
    assert [row["_reason"] for row in _late(bank, "admitted")].count(name) == 1


def _late(bank: Armed, effect: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = bank.facts("derived", "late", "kept.windows")["rows"]
    return [row for row in rows if row["_effect"] == effect]
