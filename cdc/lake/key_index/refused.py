"""Define the one error of this folder."""


class IndexRefusedError(Exception):
    """Says why an index cannot tell for certain where the rows of keys are.

    The text names the column or the data file and the cause, and no value. A caller that gets this
    error has learned nothing about the rows, and lets a MERGE find them.
    """
