"""Shows an operation while it runs."""
