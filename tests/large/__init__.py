"""Tables of a million rows, each with an installation to itself."""
