"""Install every artifact of this machine, or the named sets: ``python -m cdc.stack.artifacts``."""

import sys

from cdc.stack.artifacts.install import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
