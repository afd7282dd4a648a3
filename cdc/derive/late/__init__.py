"""Tells which rows are late, and which windows are final, from the log and from nothing else."""
