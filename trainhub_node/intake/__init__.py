"""Checks of everything that reaches the node from outside, before any of it becomes a path, a process or a
record."""
