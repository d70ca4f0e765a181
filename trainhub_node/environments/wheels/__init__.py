"""The wheels that a node keeps as files."""
