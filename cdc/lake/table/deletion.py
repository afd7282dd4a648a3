"""Deletes a Delta table without Spark."""

from contextlib import suppress

from cdc.lake.files.store_of import store_of
from cdc.lake.table.entry_file import LOG


def delete_table(path: str) -> None:
    """Delete everything below the path; a path that does not exist is no error.

    The log goes first: what is left if this is interrupted is no table, rather than one that lacks
    files.
    """
    tree = store_of(path).tree
    with suppress(FileNotFoundError):
        tree.delete_dir_contents(LOG)
    with suppress(FileNotFoundError):
        tree.delete_dir_contents("", accept_root_dir=True)
