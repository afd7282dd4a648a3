"""Derive tables from the captured ones: at every cut they equal a query over their inputs."""
