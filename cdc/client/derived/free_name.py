"""Find where a table of a new name would be in the lake, and refuse a name that is taken."""

from pyarrow import fs

from cdc.client.derived.at_cut import published_row
from cdc.config import Config
from cdc.derive.definition.file_names import QUERY, files_of, tables_of
from cdc.derive.step.mark import is_derived
from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.store_of import store_of
from cdc.lake.layout import table_path
from cdc.lake.table.positions import open_table
from cdc.tables import TableId

_OTHER = "name another table"


def free_path(config: Config, name: str) -> str:
    """Return the path in the lake of a table that nobody has.

    Raises CONFIG for a name that no table can have, and for that of a captured or derived table, of
    a definition, or of what is in the lake already.
    """
    table, path = _place(config, name)
    if published_row(config, None).readable(name) is not None:
        raise _refused(name, "the newest cut has a table of this name")
    for file in (config.derived.path / file for file in files_of(table)):
        if file.exists():
            raise _refused(name, f"{name} is defined in {file}")
    if _has_files(path):
        raise _refused(name, f"{path} exists already", _removal(path, name))
    return path


def _place(config: Config, name: str) -> tuple[TableId, str]:
    try:
        for table in tables_of(f"{name}{QUERY}"):
            return table, table_path(config, table)
    except CdcError:
        pass  # its words are about tables of the source
    remedy = "write schema.table, of names that folders can have; the schema wal2lake is taken"
    raise _refused(name, "a table cannot have this name", remedy)


def _has_files(path: str) -> bool:
    below = fs.FileSelector("", recursive=True, allow_not_found=True)
    return any(one.type == fs.FileType.File for one in store_of(path).tree.get_file_info(below))


def _removal(path: str, name: str) -> str:
    stored = open_table(path)
    if stored is None or not is_derived(stored):
        return _OTHER
    return f"{_OTHER}, or delete this one: wal2lake derived drop {name} --confirm {name}"


def _refused(name: str, what: str, remedy: str = _OTHER) -> CdcError:
    return CdcError(ErrorKind.CONFIG, f"--into {name}: {what}", remedy=remedy)
