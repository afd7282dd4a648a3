"""Install every artifact of this machine: ``python -m cdc.stack.artifacts``."""

from cdc.stack.artifacts.install import main

if __name__ == "__main__":
    raise SystemExit(main())
