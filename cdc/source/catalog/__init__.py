"""The source's catalogue: which tables there are and how their rows are identified."""
