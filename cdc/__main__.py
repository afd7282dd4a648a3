"""``wal2lake`` and ``python -m cdc``: run a command, report an error, give the exit code."""

import errno
import sys
import traceback

from cdc.cli import app
from cdc.errors import POLICY, CdcError, ErrorKind


def main() -> None:
    """Run the command of the arguments; an expected error is two lines and an exit code."""
    try:
        app()
    except CdcError as error:
        sys.exit(report(error))
    except OSError as error:
        sys.exit(report(_disk_full(error)) if error.errno == errno.ENOSPC else _defect())
    except Exception:  # noqa: BLE001 - a defect of ours: whole, and told apart by its exit code
        sys.exit(_defect())


def _defect() -> int:
    traceback.print_exc()
    return POLICY[ErrorKind.INTERNAL].exit_code


def _disk_full(error: OSError) -> CdcError:
    where = f" under {error.filename}" if error.filename else ""
    return CdcError(
        ErrorKind.DISK_FULL,
        f"no space left on the disk{where}",
        remedy="free some, and run the command again",
    )


def report(error: CdcError) -> int:
    """Print the error to stderr; return the exit code of its kind."""
    detail = f"; {error.detail}" if error.detail else ""
    print(f"error: {error.coded}{detail}", file=sys.stderr)  # noqa: T201 - the command line
    if error.remedy:
        print(f"remedy: {error.remedy}", file=sys.stderr)  # noqa: T201
    return error.policy.exit_code


if __name__ == "__main__":
    main()
