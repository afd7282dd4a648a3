"""Start the long-running job, run its threads, and watch it."""
