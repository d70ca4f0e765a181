"""Readers of the file formats of models, one module for each family. None of them runs or unpickles
anything."""
