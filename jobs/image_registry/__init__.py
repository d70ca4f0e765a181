"""The hub as a read-only registry of images for its nodes, by the OCI distribution protocol: each node gets
the image that its order names, and nothing else."""
