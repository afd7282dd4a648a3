"""The state directory: files by which commands and the running job tell each other things."""
