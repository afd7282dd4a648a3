"""Show what a command is doing: progress of an operation, a wait, a forecast."""
