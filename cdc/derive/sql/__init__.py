"""Checks that a definition has only the SQL that is allowed, and spells it for each engine."""
