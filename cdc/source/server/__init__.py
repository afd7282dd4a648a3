"""The Postgres server: connections, cluster identity, slot, and the meaning of its refusals."""
