"""Each content of the cache gets a name, which keeps equal files once."""
