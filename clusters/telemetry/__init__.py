"""Numbers over time: how they come in, are packed, folded by age, and read."""
