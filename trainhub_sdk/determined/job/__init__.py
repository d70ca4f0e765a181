"""What a script finds in a run as `determined`: the Core API on the run's own metrics and checkpoints."""
