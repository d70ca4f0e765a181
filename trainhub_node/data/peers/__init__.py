"""Nodes take the files of a dataset's version from each other."""
