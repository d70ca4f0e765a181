"""What hub and nodes exchange about other versions of the node program."""
