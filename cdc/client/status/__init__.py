"""The pipeline's position, the health of its components, and what to do about problems."""
