"""Functions of text: their forms that mean the same in every engine, and their spelling."""
