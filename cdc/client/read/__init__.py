"""Reads the lake as it was at one published cut."""
