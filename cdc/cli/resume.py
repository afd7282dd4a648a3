"""``wal2lake resume``: let a paused operation go on."""

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.wishes import IdArgument, say
from cdc.config import load
from cdc.errors import CdcError, ErrorKind
from cdc.operate import operation_files as files
from cdc.operate.history import the_unfinished


def resume(
    operation_id: IdArgument = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    loaded = load(config)
    found = the_unfinished(loaded.state_dir, operation_id)
    if files.wish(loaded.state_dir, found.id) != files.PAUSE:
        raise CdcError(
            ErrorKind.CONFIG,
            f"operation {found.id} is not paused",
            remedy=f"see how far it is: wal2lake operations {found.id}",
        )
    files.set_wish(loaded.state_dir, found.id, "")
    say(loaded, found, "goes on", as_json=as_json)
