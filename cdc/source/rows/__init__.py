"""Read rows of the source as text."""
