"""Notifies people outside of the pages: channels, the messages for them, and their delivery."""
