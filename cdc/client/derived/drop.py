"""Delete a table that is derived no more from the lake."""

from pathlib import Path

from cdc.client.derived.at_cut import published_row
from cdc.config import Config
from cdc.derive.definition.file_names import files_of
from cdc.derive.step.mark import is_derived
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import table_path
from cdc.lake.table.deletion import delete_table
from cdc.lake.table.positions import open_table
from cdc.state.admissions import admissions
from cdc.state.derived_requests import pauses, rebuilds
from cdc.tables import TableId


def drop(config: Config, name: str) -> str:
    """Delete everything below the table's path, and return the path.

    Raises CONFIG for a table that is defined, that the newest cut has, or that is not a derived
    one. Readers at older cuts are told that its versions no longer exist.
    """
    table = TableId.parse(name)
    path = table_path(config, table)
    for file in files_of(table):
        _refuse_defined(config.derived.path / file, name)
    if published_row(config, None).readable(name) is not None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"the newest cut has {name}",
            remedy="let the job give it up first: wal2lake apply-config",
        )
    stored = open_table(path)
    if stored is None or not is_derived(stored):
        raise CdcError(
            ErrorKind.CONFIG,
            f"{path} is no derived table",
            remedy="correct the name",
        )
    delete_table(path)
    for requests in (pauses(config.state_dir), rebuilds(config.state_dir)):
        requests.done(table)
    for one in (waiting := admissions(config.state_dir)).of(table):
        waiting.done(one)
    return path


def _refuse_defined(file: Path, name: str) -> None:
    if file.exists():
        raise CdcError(
            ErrorKind.CONFIG,
            f"{name} is defined in {file}",
            remedy="delete that file, then run wal2lake apply-config",
        )
