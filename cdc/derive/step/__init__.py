"""Brings a derived table to a cut: puts what differs from its query there into one commit."""
