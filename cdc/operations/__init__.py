"""What the job does on request: resnapshot, replay, purge, discard."""
