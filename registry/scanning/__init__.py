"""Finds out what loading a model's files would run. A separate process reads the files and never unpickles
them."""
