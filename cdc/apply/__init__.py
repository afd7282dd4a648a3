"""Apply the log to the tables: decode, order, merge, up to a cut."""
