"""Long random tests of a pipeline under load; not in ``make test``."""
