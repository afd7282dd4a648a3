"""Compile the predicate of ``resnapshot --where`` for Postgres and for Spark."""
