"""Conda environments: reading their YAML, solving it, and the lock that nodes install."""
