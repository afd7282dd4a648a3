"""Tests that break a running pipeline; a package, so that their shared installation ends."""
