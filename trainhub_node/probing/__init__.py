"""Orders to read a datastore: to test it, or to list its files."""
