"""Finds which rows of a derived table can change with its inputs' rows: the scope of a step."""
