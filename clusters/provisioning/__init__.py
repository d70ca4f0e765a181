"""Clusters and nodes come, change and go: by people, and by a provider's executables."""
