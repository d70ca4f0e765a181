"""Files that scripts bring along, read with the standard library alone."""
