"""Files of a datastore that the hub sends to somebody while it reads them from the store."""
