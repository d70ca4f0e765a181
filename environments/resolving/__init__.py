"""Resolving requirements to a lock, with uv in a process of its own: from the metadata of wheels only, so
that no code of a package ever runs on the hub."""
