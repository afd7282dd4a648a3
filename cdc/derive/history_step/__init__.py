"""One step of a history: the events and readings that it takes, in one commit."""
