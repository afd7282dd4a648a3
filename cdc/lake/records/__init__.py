"""Keeps the control tables beside the data: ledger, epochs, quarantine, operations, readings."""
