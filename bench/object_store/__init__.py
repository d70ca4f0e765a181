"""Files up and down through a hub with an object store."""
