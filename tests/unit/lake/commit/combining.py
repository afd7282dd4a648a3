"""Makes one file of several in a small table, step by step."""

from collections.abc import Sequence

from cdc.lake.commit.combined import Combined
from cdc.lake.commit.committer import Committer
from tests.unit.lake.commit.small_table import (
    at,
    rows,
)


def combine(committer: Committer, paths: Sequence[str]) -> Combined:
    """Make one file of these, beside the table."""
    files = committer.open().files
    return committer.combining([files[path] for path in paths])()


def place(committer: Committer, combined: Combined, offset: int = 9) -> int | None:
    """Put it in the place of the others."""
    committer.open()
    return committer.take_place(combined, at(offset))


def delete(committer: Committer, path: str, *numbers: int) -> None:
    """Delete rows of a file by their numbers, in one commit."""
    committer.commit(rows(committer, []), {path: numbers}, at(9))
