"""Log lines, descriptions of errors, and measures of the pipeline's health."""
