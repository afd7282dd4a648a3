"""What operators ask about derived tables: are the definitions valid, and are the rows right."""
