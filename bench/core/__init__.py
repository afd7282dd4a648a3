"""What every benchmark uses: figures, sizes, statistics, the machine, the result file."""
