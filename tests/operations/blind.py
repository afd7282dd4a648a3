"""Make changes that the stream never carries, while a table is out of the publication."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.installation import Installation
from tests.unpublished import put_back, taken_out


@contextmanager
def unseen(installation: Installation, *tables: str) -> Iterator[None]:
    """Keep the tables out of the publication: commits inside the block reach no log."""
    installation.run("sync")
    installation.execute(taken_out(*tables))
    try:
        yield
    finally:
        installation.execute(put_back(*tables))
        installation.run("sync")
