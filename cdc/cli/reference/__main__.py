"""Write the reference pages into the folder that is given."""

from cdc.cli.reference.pages import main

if __name__ == "__main__":
    main()
