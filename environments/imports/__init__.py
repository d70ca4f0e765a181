"""What a source imports, and which distributions provide it."""
