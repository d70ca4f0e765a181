"""Pure functions that decide which nodes a run gets, in which order runs are placed, and how many nodes a
cluster should have."""
