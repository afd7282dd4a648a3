"""Applying alone: one batch of changes into one table, by each way, on copies of one table."""
