"""Keeps the servers, the connector and the job running."""
