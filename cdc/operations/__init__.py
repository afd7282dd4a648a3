"""What the job does when it is asked: resnapshot, replay, purge, discard."""
