"""Changes that the stream never carries: made while the table is out of the publication."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.installation import Installation


@contextmanager
def unseen(installation: Installation, *tables: str) -> Iterator[None]:
    """What is committed inside the block is in the source and in no log."""
    installation.run("sync")
    listed = ", ".join(tables)
    installation.execute(f"ALTER PUBLICATION wal2lake DROP TABLE {listed}")
    try:
        yield
    finally:
        installation.execute(f"ALTER PUBLICATION wal2lake ADD TABLE {listed}")
        installation.run("sync")
