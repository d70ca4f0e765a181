"""The hub's own log files: how a line looks, and how files are kept small while they are written."""
