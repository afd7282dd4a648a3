"""One Delta table: its commits, the position they hold, and how it is merged and replaced."""
