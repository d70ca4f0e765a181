"""The broker gateway: a process that gives nodes on other machines encrypted access to the embedded Valkey.

The embedded Valkey is built without TLS, so it listens on a Unix socket only. The gateway accepts TLS, admits
only users of nodes, limits the number of connections, and copies bytes in both directions."""
