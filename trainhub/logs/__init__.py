"""The hub's own log files: the format of a line, and the rotation of files while they are written."""
