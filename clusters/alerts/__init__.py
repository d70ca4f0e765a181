"""Alerts: rules evaluate the facts that nodes report, and each alert is stored and announced once."""
