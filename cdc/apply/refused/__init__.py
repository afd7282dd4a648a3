"""Decides about refused events, and records them, for both ways of applying."""
