"""Triggers: what to ask of the installation so that the job reaches a failpoint."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from deltalake import DeltaTable

from cdc.failpoints import Failpoint
from tests.faults.bank.armed import SYNC_SECONDS, Armed
from tests.faults.scenes.derived_steps import admitted, cleared, derived
from tests.faults.scenes.running import APPLY, COMMAND_SECONDS, Await, Trigger, running
from tests.unpublished import unseen
from tests.waiting import until


def nothing(_bank: Armed, _name: str, await_kills: Await) -> None:
    """Await the kills: the transactions alone bring the job there."""
    await_kills()


def structure(bank: Armed, name: str, await_kills: Await) -> None:
    """Add a column with a default to a table without a key: structure step, rehash, note."""
    bank.execute(f"ALTER TABLE bank.visits ADD COLUMN {name} int DEFAULT 7")
    await_kills()


def upkeep(bank: Armed, _name: str, await_kills: Await) -> None:
    """Restart the job with a vacuum due at once; restore the setting for the next job."""
    hours = {"vacuum_every_hours": 1e-6}
    bank.configure(lambda written: written["job"].update(hours))
    bank.crash("job")
    await_kills()
    bank.configure(lambda written: written["job"].pop("vacuum_every_hours"))


def by_spark(bank: Armed, _name: str, await_kills: Await) -> None:
    """Restart the job so that Spark applies every batch: other small files are combined without it.

    Restore the setting for the next job.
    """
    before: dict[str, Any] = {}

    def change(written: dict[str, Any]) -> None:
        before.update(written["job"])
        written["job"] = {**before, "local_events": 0}

    bank.configure(change)
    bank.crash("job")
    await_kills()
    bank.configure(lambda written: written.update(job=before))


def reading(bank: Armed, name: str, await_kills: Await) -> None:
    """Make rows differ without an event; read the table again and merge the difference."""
    _unseen(bank, name)
    with running(bank, "resnapshot", "bank.flicker"):
        await_kills()


def shadow(bank: Armed, name: str, await_kills: Await) -> None:
    """Make rows differ without an event; read the table into a shadow."""
    _unseen(bank, name)
    with running(bank, "resnapshot", "bank.flicker", "--shadow"):
        await_kills()


def _unseen(bank: Armed, name: str) -> None:
    """Insert a row while the table is out of the publication, in one transaction."""
    rows = f"INSERT INTO bank.flicker SELECT max(id) + 1, 1, '{name}' FROM bank.flicker"
    bank.execute(unseen("bank.flicker", rows))


def refusal(bank: Armed, _name: str, await_kills: Await) -> None:
    """Insert a date that the lake refuses; delete its row and read the table again."""
    _refuse(bank)
    with running(bank, "resnapshot", "bank.odd"):
        await_kills()


def _refuse(bank: Armed) -> None:
    """Have the lake refuse a row that the source does not have any more."""
    bank.execute("INSERT INTO bank.odd VALUES (0, 'infinity')")
    bank.run("sync", "--timeout", SYNC_SECONDS, expect=8)
    bank.execute("DELETE FROM bank.odd WHERE id = 0")


def forgetting(bank: Armed, _name: str, await_kills: Await) -> None:
    """Forget the deleted rows of a table that has settled events in quarantine.

    A derived table is made anew without them.
    """
    _refuse(bank)
    bank.run("resnapshot", "bank.odd")
    with running(bank, "forget", "bank.odd", "--confirm", "bank.odd"):
        await_kills()


def operation(bank: Armed, _name: str, await_kills: Await) -> None:
    """Run an operation that changes nothing."""
    with running(bank, "resnapshot", "bank.odd"):
        await_kills()


def replay(bank: Armed, _name: str, await_kills: Await) -> None:
    """Replay a table from the log."""
    with running(bank, "replay", "bank.counters"):
        await_kills()


def taken_in(bank: Armed, name: str, await_kills: Await) -> None:
    """Capture a new table that a pattern names."""
    _create(bank, name)
    with running(bank, *APPLY):
        await_kills()


def _create(bank: Armed, name: str) -> str:
    table = f"gone.{name}"
    bank.execute(
        f"CREATE TABLE {table} (id int PRIMARY KEY, word text);"
        f"INSERT INTO {table} SELECT i, 'word ' || i FROM generate_series(1, 5) i"
    )
    return table


@contextmanager
def _without(bank: Armed) -> Iterator[None]:
    """Leave the schema's tables out of the configuration for the block."""
    bank.configure(lambda written: written["source"].update(tables=["bank.*"]))
    yield
    bank.configure(lambda written: written["source"].update(tables=["bank.*", "gone.*"]))


def returned(bank: Armed, name: str, await_kills: Await) -> None:
    """Stop capturing a table, change it, and capture it again."""
    table = _create(bank, name)
    bank.run(*APPLY)
    with _without(bank):
        bank.run(*APPLY)
        bank.execute(f"DELETE FROM {table} WHERE id < 3")
    with running(bank, *APPLY):
        await_kills()


def purge(bank: Armed, name: str, await_kills: Await) -> None:
    """Stop capturing a table and purge it; drop it in the source too."""
    table = _create(bank, name)
    bank.run(*APPLY)
    with _without(bank):
        bank.run(*APPLY)
        with running(bank, *APPLY, "--purge", table, "--confirm", table):
            await_kills()
        assert not DeltaTable.is_deltatable(f"{bank.lake}/{table.replace('.', '/')}")
        bank.execute(f"DROP TABLE {table}")
    bank.run(*APPLY)


def broken(bank: Armed, name: str, await_kills: Await) -> None:
    """Make a table's directory unreadable; replay the table from the log."""
    table = _create(bank, name)
    bank.run(*APPLY)
    bank.sync()
    place = bank.folder / "lake" / table.replace(".", "/")
    for commit in (place / "_delta_log").glob("*.json"):
        commit.write_text("no JSON")
    bank.crash("job")
    until(lambda: _state(bank, table) == "stopped", COMMAND_SECONDS)
    with running(bank, "replay", table):
        await_kills()


def _state(bank: Armed, table: str) -> str:
    tables: list[dict[str, Any]] = bank.any_facts("status")["tables"]
    return next((str(each["state"]) for each in tables if each["table"] == table), "")


AT_THE_FIRST_START: Final = ("log-create",)
FIRST_SNAPSHOT: Final = ("copy-write", "copy-keep")
"""Steps of the first snapshot by COPY: see tests/faults/test_copied_snapshot.py."""
EXPIRY: Final = ("image-record", "reading-expiry", "log-expiry", "ledger-expiry")
"""Steps that need ``job.log_retention_hours``: see tests/faults/test_retention.py."""
CASES: Final[dict[str, tuple[Trigger, tuple[str, ...]]]] = {
    "rounds": (nothing, ("log-append", "table-commit", "ledger-append")),
    "committed": (nothing, ("rows-write", "vectors-write", "entry-put")),
    "combined": (nothing, ("combined-write", "table-checkpoint")),
    "structure": (structure, ("structure-step", "rehash", "structure-note")),
    "refusal": (refusal, ("quarantine-add", "quarantine-settle")),
    "reading": (reading, ("difference-write", "reading-record")),
    "merged": (reading, ("commit-note", "difference-merge")),
    "shadow": (shadow, ("reading-write", "reading-swap")),
    "begun": (operation, ("operation-claim", "operation-begin")),
    "done": (operation, ("operation-result", "operation-ending")),
    "told": (operation, ("operation-end", "operation-tell")),
    "taken in": (taken_in, ("table-create",)),
    "returned": (returned, ("table-return",)),
    "purged": (purge, ("purge-topic", "purge-index")),
    "emptied": (purge, ("topic-open", "topic-close")),
    "purged whole": (purge, ("purge-readings", "purge-table")),
    "replayed": (replay, ("replay-swap",)),
    "broken": (broken, ("broken-move",)),
    "forgotten": (forgetting, ("segment-end", "quarantine-forget")),
    "rewritten": (forgetting, ("erasure-commit",)),
    "optimized": (by_spark, ("optimize",)),
    "vacuumed": (upkeep, ("vacuum", "file-expiry", "commit-expiry")),
    "derived": (derived, ("derived-commit", "late-commit")),
    "cleared": (cleared, ("derived-clear",)),
    "admitted": (admitted, ("admit-commit", "admit-end", "windows-reopen")),
    "control": (nothing, ("control-optimize", "control-vacuum")),
}
"""The trigger and steps of each case; few steps, as an operation is given up after five deaths."""


def points_of(*steps: str) -> tuple[Failpoint, ...]:
    """Return the failpoints before and after the steps, in the order the job reaches them."""
    return tuple(Failpoint(f"{side}-{step}") for step in steps for side in ("before", "after"))
