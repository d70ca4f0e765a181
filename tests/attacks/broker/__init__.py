"""Attacks by way of the broker: forged wake-ups, a hostile node's user there, and whoever reads the
network."""
