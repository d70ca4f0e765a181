"""Checks on what reaches the node from outside, made before any of it becomes a path, a process or a
record."""
