"""Where the row of a key is: one index per data file, made from the file's key columns."""
