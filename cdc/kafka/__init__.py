"""Manage Kafka topics and their offsets, and read the schema registry."""
