"""Making conda environments."""
