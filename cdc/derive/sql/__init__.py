"""The SQL that a definition may have: what is allowed, and how each engine spells it."""
