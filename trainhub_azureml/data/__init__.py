"""Datastores and datasets of the SDK v1 on those of a hub."""
