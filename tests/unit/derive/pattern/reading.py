"""Read patterns from texts in tests."""

from cdc.derive.pattern.pattern import Bounds, ReadPattern, read_pattern
from cdc.derive.sql.place import Reporter


def read_text(text: str, within: int | None = None) -> ReadPattern:
    bounds = Bounds(within=within, most_rows=1000)
    found, problems = read_pattern(Reporter("t.sql", text), text, bounds)
    assert problems == []
    assert found is not None
    return found
