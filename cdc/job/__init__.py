"""The long-running job: its start, its threads, and its own watch."""
