"""Spells a query for Spark, the second engine, so that it is a witness of the first."""
