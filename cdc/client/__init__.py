"""What a command does itself: look at the source, the lake and the servers, and ask the job."""
