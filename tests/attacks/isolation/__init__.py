"""Runs that try to reach other runs, the hub and the machine, in each mode that docs/isolation.md
compares."""
