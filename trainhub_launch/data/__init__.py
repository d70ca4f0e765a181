"""Data that runs read, as the hub and the nodes name it."""
