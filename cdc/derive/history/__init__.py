"""What a history declares, and the versions that events make."""
