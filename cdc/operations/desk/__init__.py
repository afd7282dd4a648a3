"""Runs the requested operations one after the other, and keeps a record of each."""
