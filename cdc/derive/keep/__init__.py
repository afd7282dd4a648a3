"""Keeps all derived tables at the cut that is about to be published."""
