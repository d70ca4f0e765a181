"""NFS shares: mounted by the children of attempts, once for all that need the same, and unmounted by the
agent."""
