"""The Postgres side: connection, catalogue, publication, slot, connector, barrier, snapshot."""
