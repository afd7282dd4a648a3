"""The Kafka side: topics, offsets, schema registry."""
