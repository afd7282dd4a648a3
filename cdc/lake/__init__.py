"""Delta at rest: paths of the tables, what is written to them, and how positions are read back."""
