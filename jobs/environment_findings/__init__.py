"""What the packages of an environment mean for a run, before it is launched: read from the lock, the source
and the reports of nodes."""
