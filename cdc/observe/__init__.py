"""Writes log lines, describes errors, and measures the pipeline's health."""
