"""Runs rounds: finds the next cut, brings every table there, publishes it."""
