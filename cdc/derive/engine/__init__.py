"""Calculates the queries with DuckDB: sets it up, defines its types and loads what it reads."""
