"""Runs the operations requested of the job, such as resnapshot, replay, purge and discard."""
