"""Read the lake as of one published cut."""
