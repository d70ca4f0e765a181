"""Moves logs of ended attempts from DATA_DIR/runs to the stored files, and so into the object store."""
