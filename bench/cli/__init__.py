"""CPU time of the command line."""
