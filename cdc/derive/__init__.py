"""Keep derived tables: queries over captured tables, brought to every cut."""
