"""``wal2lake down``: stop what up started, also what a killed one left behind."""

import json

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.config import load
from cdc.stack.supervise import detached


def down(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    ended = detached.down(load(config))
    if as_json:
        print(json.dumps({"ended": ended}))
    else:
        print(f"ended: {', '.join(ended)}" if ended else "nothing was running")
