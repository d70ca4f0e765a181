"""Building the environment of a run: where foreign code runs, apart from everything that others trust."""
