"""One child process: its log, its record, its end, and what a killed one leaves behind."""
