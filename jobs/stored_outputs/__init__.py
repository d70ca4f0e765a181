"""Outputs of runs that lie in a datastore: where, which, and how they are read."""
