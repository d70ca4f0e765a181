"""Random bytes and texts for everything that reads what strangers send: a short run in `make test`, a long
one by `make fuzz`."""
