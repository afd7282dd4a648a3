"""Compare the source with the lake, row by row, at one position."""
