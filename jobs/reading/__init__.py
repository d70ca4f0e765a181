"""How fast the ranks of a running run read their data, and whether GPUs wait for it."""
