"""Random and long: any schema, changed at random under load; not in ``make test``."""
