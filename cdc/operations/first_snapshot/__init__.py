"""Read all tables at one moment, by COPY, into their first versions: docs/decisions/0034."""
