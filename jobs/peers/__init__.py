"""What lets nodes take the files of a dataset's version from each other: tickets and certificates."""
