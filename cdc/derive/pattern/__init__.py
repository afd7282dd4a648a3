"""Find patterns in ordered rows: the clause PATTERN, the conditions of DEFINE and the matcher."""
