"""Orders to nodes that are no runs: what all kinds of them have in common."""
