"""Tables as they were at a moment: ``FOR SYSTEM_TIME AS OF`` as a join with a history."""
