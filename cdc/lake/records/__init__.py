"""The control tables that wal2lake keeps beside the data: ledger, epochs, quarantine, readings."""
