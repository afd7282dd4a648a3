"""The source: its Postgres server, catalogue, publication, slot, and the Debezium connector."""
