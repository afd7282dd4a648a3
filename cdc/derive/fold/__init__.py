"""Folds: a file in Python, what it may use, and the state that its events give."""
