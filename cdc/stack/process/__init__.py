"""Child processes: start, log file, record, stop, and cleanup after a killed one."""
