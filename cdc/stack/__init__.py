"""Runs the embedded servers and the job, under a supervisor that keeps them running."""
