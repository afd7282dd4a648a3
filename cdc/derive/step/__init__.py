"""One step of one derived table: what differs from its query at a cut, in one commit."""
