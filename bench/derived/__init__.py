"""Derived tables: what a step costs, what ten of them add to a round, and how fast they catch up."""
