"""The best open peer that runs from public packages: Flink CDC into Paimon."""
