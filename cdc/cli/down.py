"""``wal2lake down`` stops everything that up started, also what a killed up left behind."""

import json

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.config import load
from cdc.stack.supervise import detached


def down(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Stop the supervisor and its processes, and print the names of those that were stopped."""
    ended = detached.down(load(config))
    if as_json:
        print(json.dumps({"ended": ended}))
    else:
        print(f"stopped: {', '.join(ended)}" if ended else "nothing was running")
