"""Versions of environments that a node must make: the orders to do so, what the nodes upload, and what
becomes of the version."""
