"""Count the changes of the source made by several threads."""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Counts of transactions and statements; safe for threads."""

    transactions: Counter[str] = field(default_factory=Counter)
    """Transactions by outcome."""
    statements: Counter[str] = field(default_factory=Counter)
    """Statements of committed transactions, by kind."""
    structures: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Refused statements, by kind and SQLSTATE."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ended(self, how: str) -> None:
        """Count a transaction that did not commit."""
        with self._lock:
            self.transactions[how] += 1

    def committed(self, statements: Counter[str], structure: str | None = None) -> None:
        """Count a committed transaction, its statements and its change of structure."""
        with self._lock:
            self.transactions["committed"] += 1
            self.statements += statements
            if structure is not None:
                self.structures[structure] += 1

    def refuse(self, kind: str, sqlstate: str) -> None:
        """Count a statement that Postgres refused."""
        with self._lock:
            self.refused[kind, sqlstate] += 1

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        yield _line("transactions", self.transactions)
        yield _line("statements", self.statements)
        yield _line("changes of structure", self.structures)
        states = Counter[str]()
        kinds = Counter[str]()
        for (kind, state), number in self.refused.items():
            states[state] += number
            kinds[kind] += number
        yield _line("refused by SQLSTATE", states)
        yield _line("refused by kind", kinds)


def _line(title: str, counted: Counter[str]) -> str:
    listed = ", ".join(f"{name} {number}" for name, number in counted.most_common())
    return f"{title}: {counted.total()} ({listed})" if counted else f"{title}: none"
