"""From the configuration of a script to a run of the hub."""
