"""Draws the steps of the walk of faults: a function of the seed alone.

Neither the duration nor the outcome of a step matters; the clock only decides after which step the
walk ends. A seed that failed therefore repeats the same steps up to the failure.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

from tests.faults.bank.bank import TABLES
from tests.faults.bank.marts import MARTS
from tests.faults.scenes.disturbances import PROCESSES
from tests.faults.scenes.scenarios import SCENARIOS
from tests.soak.definitions import NAMES, definition
from tests.soak.own_tables import ROWS, Shifting

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Describes one step of the walk."""

    number: int
    kind: str
    name: str
    """The name to print; for a fault or a case also its key."""
    sql: str = ""
    """Statements for the source, or a definition."""
    arguments: tuple[str, ...] = ()
    """Arguments of a wal2lake command."""
    during: str = ""
    """The fault under which an operation runs, or ``pause``."""

    @property
    def text(self) -> str:
        """The line that the walk prints for the step."""
        extra = f", under it: {self.during}" if self.during else ""
        return f"step {self.number}: {self.kind}: {self.name}{extra}"


FAULTS: Final[dict[str, int]] = {
    **dict.fromkeys(sorted(SCENARIOS), 4),
    **{name: 3 for name in sorted(SCENARIOS) if name.startswith("stop ")},
    "source dropped": 3,
    "source slow": 3,
    # Each of these takes a minute or more, or brings many parts down.
    "undisturbed": 1,
    "source stalled": 1,
    "kafka away": 1,
    "disk of the lake full": 1,
    "disk of kafka full": 1,
    "second worker": 1,
}
CASES: Final = {"unseen rows": 4, "refusal": 4, "taken in": 3, "returned": 1, "purged": 1}
"""Cases by name; most are defined in ``tests/faults/scenes/steps.py``."""
DURING: Final[dict[str, int]] = {
    "": 10,
    "pause": 4,
    **{f"kill {name}": 1 for name in PROCESSES},
    **{f"stop {name}": 1 for name in PROCESSES},
    "end the walsender": 1,
}
"""Without a death of the source, which makes a reading fail (operations.md)."""
READ_AGAIN: Final = (*(name for name in TABLES if name != "emptied"), "large", "shifting")
"""Without a table that is often truncated: a reading gives up after three truncates."""
WHERE: Final = {
    "accounts": "id % 3 = 1",
    "bulk": "id <= 100",
    "large": "id BETWEEN 100 AND 900",
    "debits": "mark < 100",
    "ring": "id <> 4",
}
_COMMANDS: Final[dict[tuple[str, ...], int]] = {("verify",): 1, ("sync",): 1}


def steps(seed: int) -> Iterator[Step]:
    """Yield steps without end."""
    chance, shifting = random.Random(seed), Shifting()
    for number in count(1):
        draw = _drawn(chance, KINDS)
        yield draw(chance, number, shifting)


def _fault(chance: random.Random, number: int, _shifting: Shifting) -> Step:
    return Step(number=number, kind="fault", name=_drawn(chance, FAULTS))


def _case(chance: random.Random, number: int, _shifting: Shifting) -> Step:
    return Step(number=number, kind="case", name=_drawn(chance, CASES))


def _rows(chance: random.Random, number: int, _shifting: Shifting) -> Step:
    name = chance.choice(list(ROWS))
    return Step(number=number, kind="rows", name=name, sql=ROWS[name](chance, number))


def _structure(chance: random.Random, number: int, shifting: Shifting) -> Step:
    name, sql = shifting.change(chance, number)
    return Step(number=number, kind="structure", name=name, sql=sql)


def _operation(chance: random.Random, number: int, _shifting: Shifting) -> Step:
    arguments = _drawn(chance, {_in_place: 3, _shadow: 3, _where: 2, _replay: 3})(chance)
    return Step(
        number=number,
        kind="operation",
        name=" ".join(arguments),
        arguments=arguments,
        during=_drawn(chance, DURING),
    )


def _in_place(chance: random.Random) -> tuple[str, ...]:
    return "resnapshot", f"bank.{chance.choice(READ_AGAIN)}"


def _shadow(chance: random.Random) -> tuple[str, ...]:
    return (*_in_place(chance), "--shadow")


def _where(chance: random.Random) -> tuple[str, ...]:
    table = chance.choice(list(WHERE))
    return "resnapshot", f"bank.{table}", "--where", WHERE[table]


def _replay(chance: random.Random) -> tuple[str, ...]:
    return "replay", f"bank.{chance.choice(TABLES)}"


def _command(chance: random.Random, number: int, _shifting: Shifting) -> Step:
    arguments = _drawn(chance, _COMMANDS)
    return Step(number=number, kind="command", name=" ".join(arguments), arguments=arguments)


def _define(chance: random.Random, number: int, _shifting: Shifting) -> Step:
    name = chance.choice(NAMES)
    return Step(number=number, kind="define", name=name, sql=definition(chance))


def _witness(chance: random.Random, number: int, _shifting: Shifting) -> Step:
    arguments = _drawn(chance, {_by_source: 3, _by_spark: 2, _by_rebuild: 3})(chance)
    return Step(number=number, kind="witness", name=" ".join(arguments), arguments=arguments)


def _by_source(_chance: random.Random) -> tuple[str, ...]:
    return "verify", "--source"


def _by_spark(_chance: random.Random) -> tuple[str, ...]:
    return "verify", "--engine", "spark"


def _by_rebuild(chance: random.Random) -> tuple[str, ...]:
    """Rebuild a table; one of late rows, or a history, must come out as it is from the log."""
    return "rebuild", chance.choice([name for name, mart in MARTS.items() if mart.text])


def _plain(kind: str, name: str) -> "Draw":
    def draw(_chance: random.Random, number: int, _shifting: Shifting) -> Step:
        return Step(number=number, kind=kind, name=name)

    return draw


Draw = Callable[[random.Random, int, Shifting], Step]
KINDS: Final[dict[Draw, int]] = {
    _fault: 40,
    _rows: 16,
    _operation: 16,
    _structure: 10,
    _plain("rest", "pause the bank and compare all tables"): 6,
    _command: 6,
    _define: 6,
    _witness: 8,
    _plain("restart", "down and up"): 3,
    _plain("upkeep", "wait for a search for strays"): 3,
    _case: 4,
}


def _drawn(chance: random.Random, weights: Mapping[T, int]) -> T:
    return chance.choices(list(weights), list(weights.values()))[0]
