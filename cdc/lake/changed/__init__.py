"""Finds what differs between two versions of a table, from its log and the files that changed."""
