"""Nodes that exchange the files of a dataset's version."""
