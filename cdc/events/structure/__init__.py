"""Describes a table's structure in the source, and what the lake must do when it changes."""
