"""Check, explain, preview, verify, rebuild and drop derived tables, and admit late rows."""
