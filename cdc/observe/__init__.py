"""What the pipeline says about itself: its log lines and its measures."""
