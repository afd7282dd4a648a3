"""From rows of the log to one change per key."""
