"""Measures what readers pay after many rounds."""
