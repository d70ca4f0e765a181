"""Where the hub keeps its stored files."""
