"""Report the pipeline's position, its components' health, and what to do about problems."""
