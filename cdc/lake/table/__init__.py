"""One Delta table: its commits, the position in them, and how rows are merged or replaced."""
