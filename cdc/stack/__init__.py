"""The embedded servers, and the supervisor that keeps them and the job running."""
