"""Measure the tests: which of them fail when a rule of the code is removed."""
