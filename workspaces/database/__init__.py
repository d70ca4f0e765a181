"""How the hub uses its database."""
