"""Says how each server and the job is configured, started and found ready."""
