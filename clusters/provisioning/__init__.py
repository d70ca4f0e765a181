"""Creates, changes and removes clusters and nodes, for operators and through a provider's programs."""
