"""Which files of a version the hub has stored for its nodes, and fetching the others before a node needs
them."""
