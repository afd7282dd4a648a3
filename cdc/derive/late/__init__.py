"""Which rows are late, and which windows are final: functions of the log, and of nothing else."""
