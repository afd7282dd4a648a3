"""Define the options that all commands share."""

from pathlib import Path
from typing import Annotated

import typer

from cdc.config import DEFAULT_FILE

ConfigOption = Annotated[
    Path, typer.Option("--config", "-c", metavar="FILE", help="The configuration file.")
]
"""Use as ``config: ConfigOption = DEFAULT_CONFIG``."""

DEFAULT_CONFIG = Path(DEFAULT_FILE)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
"""Use as ``as_json: JsonOption = False``."""
