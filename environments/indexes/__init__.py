"""Package indexes: their addresses, which of them the hub may ask, and how it signs in there."""
