"""How far the pipeline is, how healthy its parts are, and what to do."""
