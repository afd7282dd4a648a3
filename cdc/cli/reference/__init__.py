"""Write the reference pages from the code: ``python -m cdc.cli.reference FOLDER``."""
