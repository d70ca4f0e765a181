"""Hosts that take data from each other."""
