"""The supervisor: keeps the servers, the connector and the job running."""
