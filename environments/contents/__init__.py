"""Which packages an environment contains, and what they need of a node."""
