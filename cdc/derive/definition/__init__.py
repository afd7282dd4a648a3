"""Read the definitions of derived tables, and refuse what cannot be kept exactly."""
