"""What the commands do: inspect the source, the lake and the servers, and ask the job."""
