"""The benchmarks: ours and what it is compared with, side by side in one run."""
