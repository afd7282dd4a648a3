"""What readers pay after many rounds."""
