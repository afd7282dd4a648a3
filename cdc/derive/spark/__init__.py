"""Spark, the second engine: how it spells a query, so that it is a witness of the first."""
