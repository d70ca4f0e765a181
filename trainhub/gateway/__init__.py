"""The broker gateway: a process that gives nodes on other machines an encrypted way to the embedded Valkey.

The Valkey that the hub brings along is built without TLS, so it listens on a Unix socket alone. The gateway
accepts TLS, lets only users of nodes pass, bounds how many connections there are, and copies bytes between
the two."""
