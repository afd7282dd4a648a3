"""The Debezium connector on a Kafka Connect worker."""
