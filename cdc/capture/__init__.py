"""Keeps slot, connector, topics and log one unbroken chain, and begins it anew on request."""
