"""Connect to the Postgres server, check its identity and the slot, and explain its refusals."""
