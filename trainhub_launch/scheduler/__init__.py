"""Which nodes a run gets, in which order runs get theirs, and how many nodes a cluster should have. Pure."""
