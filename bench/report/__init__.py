"""What a run shows: tables, plots, the page of the documentation."""
