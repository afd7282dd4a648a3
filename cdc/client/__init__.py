"""Do the work of the commands: inspect the source, the lake and the servers, and ask the job."""
