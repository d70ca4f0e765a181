"""The documents of this installation as pages below /docs/, with a search."""
