"""Creates tables: empty ones, tables of given rows, and second tables of the same files."""
