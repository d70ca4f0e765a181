"""Telling people outside of the pages: channels, what is sent over them, and how it gets there."""
