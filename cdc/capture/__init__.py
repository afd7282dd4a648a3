"""Keeps slot, connector, topics and log one unbroken chain, and starts a new one on request."""
