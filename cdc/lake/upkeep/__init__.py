"""Keeps Delta tables small: rewrites small files and removes old versions."""
