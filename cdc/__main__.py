"""Run a command, report its error and return the exit code: ``wal2lake``, ``python -m cdc``."""

import errno
import os
import sys
from typing import NoReturn

from cdc.cli import app
from cdc.errors import POLICY, CdcError, ErrorKind


def main() -> None:
    """Run the command in the arguments; report an expected error in two lines, and exit."""
    try:
        app()
    except CdcError as error:
        code = report(error)
        if sys.argv[1:2] == ["run"]:
            leave(code)
        sys.exit(code)
    except OSError as error:
        sys.exit(report(_disk_full(error)) if error.errno == errno.ENOSPC else _defect(error))
    except Exception as error:  # noqa: BLE001 - a defect of ours, which has its own exit code
        sys.exit(_defect(error))


def _defect(error: Exception) -> int:
    """Print a traceback without the messages, which may contain values of rows.

    An error of a lake's object store that does not answer is none of ours.
    """
    from cdc.lake.files.unreachable import unreachable  # noqa: PLC0415 - commands do without both
    from cdc.observe.defects import traceback_of  # noqa: PLC0415

    if (named := unreachable(error)) is not None:
        return report(named)
    print(traceback_of(error), file=sys.stderr)  # noqa: T201 - the command line
    return POLICY[ErrorKind.INTERNAL].exit_code


def _disk_full(error: OSError) -> CdcError:
    where = f" under {error.filename}" if error.filename else ""
    return CdcError(
        ErrorKind.DISK_FULL,
        f"no space left on the disk{where}",
        remedy="free some space, then run the command again",
    )


def report(error: CdcError) -> int:
    """Print the error to stderr and return the exit code of its kind."""
    detail = f"; {error.detail}" if error.detail else ""
    print(f"error: {error.coded}{detail}", file=sys.stderr)  # noqa: T201 - the command line
    if error.remedy:
        print(f"remedy: {error.remedy}", file=sys.stderr)  # noqa: T201
    return error.policy.exit_code


def leave(code: int) -> NoReturn:
    """End the job with an exit code, and wait for no thread.

    One that makes a page may be in delta-rs, which asks a store that is away for minutes. Python's
    own end crashes once it returns from there, and then the exit code is another.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
