"""The page of derived tables says how each query of the suites is kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.suites.kept import REFUSED, SCOPED, WHOLE
from tests.suites.nexmark.test_nexmark import CLASSES as NEXMARK
from tests.suites.tpch.test_tpch import CLASSES as TPCH

PAGE: Final = Path(__file__).parents[2] / "docs" / "derived-tables.md"
Suite = dict[str, str]


def test_the_page_has_the_classes() -> None:
    assert "\n".join(table()) in PAGE.read_text()


def table() -> Iterator[str]:
    """Yield the lines of the table, with the reasons in the order of the queries."""
    yield "| kept | Nexmark | TPC-H |"
    yield "|---|---|---|"
    reasons = [*map(_kind, NEXMARK.values()), *map(_kind, TPCH.values())]
    for kind in sorted(dict.fromkeys(reasons), key=_place):
        named = (", ".join(q for q, c in suite.items() if _kind(c) == kind) for suite in SUITES)
        yield f"| {kind} | {' | '.join(named)} |"


SUITES: Final[tuple[Suite, Suite]] = (NEXMARK, TPCH)


def _kind(kept: str) -> str:
    """Return the class without the columns of a scope key."""
    return SCOPED if kept.startswith(SCOPED) else kept


def _place(kind: str) -> int:
    return [SCOPED, WHOLE, REFUSED].index(kind.partition(":")[0])
