"""What a node makes for the hub and uploads to it: the parts of environments that somebody's code must be run
for."""
