"""A package, because the Postgres of its tests has the scope of one."""
