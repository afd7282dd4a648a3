"""Rounds: find the next cut, bring every table there, publish it."""
