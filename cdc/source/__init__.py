"""Set up, read and watch the source: its server, catalogue, publication, slot and connector."""
