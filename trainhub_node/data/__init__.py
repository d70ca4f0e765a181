"""Downloading the data of runs, and the cache in which the node keeps it."""
