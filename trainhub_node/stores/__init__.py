"""Files that an agent writes into a datastore, reads there, or removes, in processes of their own."""
