"""Write the reference pages: ``python -m cdc.cli.reference FOLDER``."""

from cdc.cli.reference.pages import main

if __name__ == "__main__":
    main()
