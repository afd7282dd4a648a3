"""Perform the steps of the walk of faults; each returns when done, before recovery."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Final, Self

from tests.faults.bank.armed import SYNC_SECONDS, Armed
from tests.faults.bank.bank import TABLES, at_work
from tests.faults.bank.marts import assert_agreed, assert_derived
from tests.faults.bank.readers import RECOVERY_SECONDS
from tests.faults.scenes import steps as cases
from tests.faults.scenes.maintenance import plant_stray
from tests.faults.scenes.running import Await, Trigger
from tests.faults.scenes.scenarios import SCENARIOS
from tests.faults.scenes.scene import Scene
from tests.soak import own_tables
from tests.soak.asking import await_processes, operate
from tests.soak.steps import Step
from tests.unpublished import unseen
from tests.waiting import until

COMPARED: Final = (*TABLES, *own_tables.TABLES)
OTHER_COMMITS: Final = frozenset({"operation", "structure", "case", "upkeep", "define"})
"""Kinds of steps in which more than rounds commit to tables, or the job is reconfigured."""


class Work:
    """Commits the bank's transactions during the ``with`` block, except while resting."""

    def __init__(self, scene: Scene, *, seed: int) -> None:
        self._scene = scene
        self._seeds = count(seed)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Suspend the transactions for the block."""
        self._open.close()
        yield
        self._begin()

    def _begin(self) -> None:
        bank, commits = self._scene.bank, self._scene.walk.commits
        self._open.enter_context(at_work(bank, commits, seed=next(self._seeds)))


def act(step: Step, scene: Scene, work: Work) -> None:
    """Perform one step once all processes are up."""
    await_processes(scene.bank)
    _ACTS[step.kind](step, scene, work)


def compare(bank: Armed) -> None:
    """Compare each table by a second reader; the source must be at rest."""
    bank.sync()
    bank.assert_equal(*COMPARED)
    assert_derived(bank)


def _fault(step: Step, scene: Scene, _work: Work) -> None:
    SCENARIOS[step.name](scene)


def _sql(step: Step, scene: Scene, _work: Work) -> None:
    scene.bank.execute(step.sql)


def _operation(step: Step, scene: Scene, _work: Work) -> None:
    operate(scene.bank, step.arguments, step.during)


def _rest(_step: Step, scene: Scene, work: Work) -> None:
    with work.resting():
        compare(scene.bank)


def _command(step: Step, scene: Scene, _work: Work) -> None:
    """Run a command that must exit with 0: all is equal, or the lake has caught up."""
    limit = ("--timeout", SYNC_SECONDS) if step.name == "sync" else ()
    scene.bank.run(*step.arguments, *limit)


def _define(step: Step, scene: Scene, _work: Work) -> None:
    """Define a derived table, or replace its definition."""
    (scene.bank.folder / "derived" / f"{step.name}.sql").write_text(step.sql)
    scene.bank.run("apply-config", "--timeout", SYNC_SECONDS)


def _witness(step: Step, scene: Scene, work: Work) -> None:
    """Rebuild a table; or rest, as any may lag while they work, and let a witness calculate all."""
    if step.arguments[0] == "rebuild":
        scene.bank.run("derived", *step.arguments)
        return
    with work.resting():
        scene.bank.sync()
        assert_agreed(scene.bank, *step.arguments[1:])


def _restart(_step: Step, scene: Scene, _work: Work) -> None:
    scene.bank.down()
    scene.bank.up()


def _upkeep(step: Step, scene: Scene, _work: Work) -> None:
    stray = plant_stray(Path(f"{scene.bank.lake}/bank/accounts"))
    cases.upkeep(
        scene.bank,
        f"step_{step.number}",
        lambda: until(lambda: not stray.exists(), RECOVERY_SECONDS),
    )


def _case(step: Step, scene: Scene, _work: Work) -> None:
    _CASES[step.name](scene.bank, f"step_{step.number}", _await_nothing)


def _await_nothing() -> None:
    pass


def _unseen_rows(bank: Armed, name: str, _await: Await) -> None:
    """Insert rows that no log has, in a table that the second slot is not compared for."""
    rows = "INSERT INTO bank.odd SELECT max(id) + 1, date '2024-02-29' FROM bank.odd"
    bank.execute(unseen("bank.odd", rows))
    mode = ("--shadow",) if int(name.rpartition("_")[2]) % 2 else ()
    operate(bank, ("resnapshot", "bank.odd", *mode), "")


_CASES: Final[dict[str, Trigger]] = {
    "unseen rows": _unseen_rows,
    "refusal": cases.refusal,
    "taken in": cases.taken_in,
    "returned": cases.returned,
    "purged": cases.purge,
}
_ACTS: Final[dict[str, Callable[[Step, Scene, Work], None]]] = {
    "fault": _fault,
    "rows": _sql,
    "structure": _sql,
    "operation": _operation,
    "rest": _rest,
    "command": _command,
    "restart": _restart,
    "upkeep": _upkeep,
    "case": _case,
    "define": _define,
    "witness": _witness,
}
