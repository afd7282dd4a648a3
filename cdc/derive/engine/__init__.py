"""DuckDB, which calculates the queries: its settings, its types and what it reads."""
