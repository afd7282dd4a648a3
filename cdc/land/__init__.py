"""Appends every change event to the log, byte for byte."""
