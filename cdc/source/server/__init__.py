"""The Postgres server: connections, its identity, the slot, and what its refusals mean."""
