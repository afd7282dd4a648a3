"""Handle single values: Postgres types, lake types, LSNs, and text quoted as SQL."""
