"""Brings a history one step on: takes events and readings into it, in one commit."""
