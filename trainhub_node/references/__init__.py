"""Data that scripts read from its store themselves, by addresses that end."""
