"""What goes wrong between this machine and a hub, in sentences."""
