"""``wal2lake pause``: let an operation rest at its next safe point."""

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.wishes import IdArgument, say
from cdc.config import load
from cdc.operate import operation_files as files
from cdc.operate.history import the_unfinished


def pause(
    operation_id: IdArgument = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    loaded = load(config)
    found = the_unfinished(loaded.state_dir, operation_id)
    files.set_wish(loaded.state_dir, found.id, files.PAUSE)
    say(loaded, found, "rests at its next safe point", as_json=as_json)
