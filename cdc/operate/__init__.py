"""What an operator asks of a running pipeline: is it up, how far, is it equal."""
