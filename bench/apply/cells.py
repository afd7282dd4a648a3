"""The grid of what is measured, the most important cells first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.apply.batch import APPEND, HOT, UNIFORM
from bench.core.sizes import Sizes

USUAL_CHANGES = 10_000


@dataclass(frozen=True, slots=True)
class Cell:
    """Names a distribution of keys, and a number of changes."""

    keys: str
    changes: int


def table_sizes(sizes: Sizes) -> list[int]:
    """Return the sizes of tables: the middle one, which most rows ask for, first."""
    return _usual_first(sizes.table_rows, sorted(sizes.table_rows)[len(sizes.table_rows) // 2])


def cells(sizes: Sizes) -> Iterator[Cell]:
    """Yield the cells of one table."""
    usual = USUAL_CHANGES if USUAL_CHANGES in sizes.changes else max(sizes.changes)
    for keys in (UNIFORM, HOT, APPEND):
        for changes in _usual_first(sizes.changes, usual):
            yield Cell(keys, changes)


def _usual_first(values: Sequence[int], usual: int) -> list[int]:
    return [usual, *(value for value in values if value != usual)]


def is_usual(cell: Cell) -> bool:
    """Return whether the cell is that of the rows to be reached."""
    return cell.keys == UNIFORM and cell.changes == USUAL_CHANGES


class TimeBox:
    """The seconds that each slow way may take over all cells of one table."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._spent: dict[str, float] = {}

    def has_time(self, way: str) -> bool:
        """Return whether the way may go on."""
        return self._spent.get(way, 0.0) < self.seconds

    def spend(self, way: str, seconds: float) -> None:
        """Count what the way has taken."""
        self._spent[way] = self._spent.get(way, 0.0) + seconds
