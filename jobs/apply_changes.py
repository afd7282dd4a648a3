"""spark-submit entry point of the long-running job: ``apply_changes.py [wal2lake.yaml]``."""

import sys
from pathlib import Path

from cdc.__main__ import leave, report
from cdc.cli.run import apply_changes
from cdc.config import DEFAULT_FILE
from cdc.errors import CdcError


def main() -> int:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else DEFAULT_FILE)
    try:
        apply_changes(path)
    except CdcError as error:
        leave(report(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
