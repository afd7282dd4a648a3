"""The job is killed at each failpoint; a package, so that the installation they share ends."""
