"""Read tables as they were at a moment: ``FOR SYSTEM_TIME AS OF`` becomes a join with a history."""
