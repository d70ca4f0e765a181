"""Compares the files of a dataset's version with what is there now."""
