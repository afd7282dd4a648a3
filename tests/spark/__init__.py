"""Tests of DataFrame code; a package, so that their Spark session ends with the last of them."""
