"""Profiles as flame graphs."""
