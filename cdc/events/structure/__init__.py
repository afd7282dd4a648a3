"""A table's structure, and what a change of it means for the lake."""
