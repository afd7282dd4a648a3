"""The servers and the job: how each is configured, started and found ready."""
