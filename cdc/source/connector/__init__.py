"""Configure, start and watch the Debezium connector on a Kafka Connect worker."""
