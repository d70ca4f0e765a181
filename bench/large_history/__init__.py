"""What a history of a million runs costs each page, each search, a purge, and the start of a hub."""
