"""Delta at rest: where tables lie, what is written to them and how positions are read back."""
