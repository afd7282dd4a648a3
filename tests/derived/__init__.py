"""Derived tables of a running installation."""
