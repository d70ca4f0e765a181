"""Building the environment of a run: where third-party code runs, isolated from everything that others
trust."""
