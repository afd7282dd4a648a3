"""Derived tables: the cost of a step, of ten tables in a round, and of catching up."""
