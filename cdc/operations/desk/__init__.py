"""Runs one requested operation after the other and keeps a record of each."""
