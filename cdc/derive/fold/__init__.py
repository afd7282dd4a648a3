"""Checks the Python files of folds, and finds the state that the events of each stream give."""
